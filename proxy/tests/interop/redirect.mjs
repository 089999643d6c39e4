// Preload that sends a client through a hop without telling it (`node --import ./redirect.mjs client.mjs URL`).
//
// Connections to port HOP_FROM of this machine are dialled to port HOP_TO instead. The URL the client
// holds, its Host header and everything else stay as they are: the hop stands where the server stood,
// as a proxy that took over the server's public address does.
import net from 'node:net';

const from = Number(process.env.HOP_FROM);
const to = Number(process.env.HOP_TO);
const LOOPBACK = new Set([undefined, 'localhost', '127.0.0.1', '::1']);

const redirected = (options) =>
  options !== null && typeof options === 'object' && Number(options.port) === from && LOOPBACK.has(options.host)
    ? { ...options, host: '127.0.0.1', port: to }
    : options;

if (from && to) {
  const dial = net.Socket.prototype.connect;
  net.Socket.prototype.connect = function (first, ...rest) {
    // Node's own callers hand over one array of already sorted arguments, marked by a symbol.
    if (Array.isArray(first)) first[0] = redirected(first[0]);
    else first = redirected(first);
    return dial.call(this, first, ...rest);
  };
}
