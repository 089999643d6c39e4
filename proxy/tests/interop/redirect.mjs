// Preload that sends a client through a hop without telling it (`node --import ./redirect.mjs client.mjs URL`).
//
// Connections to port HOP_FROM of this machine are dialled to port HOP_TO instead. The URL the client
// holds, its Host header and everything else stay as they are: the hop stands where the server stood,
// as a proxy that took over the server's public address does. A client that went around the hop says
// so at its end, so that no test passes that way.
import net from 'node:net';

const from = Number(process.env.HOP_FROM);
const to = Number(process.env.HOP_TO);
const LOOPBACK = new Set([undefined, 'localhost', '127.0.0.1', '::1']);

let dials = 0;

function redirected(options) {
  const ours =
    options !== null && typeof options === 'object' && Number(options.port) === from && LOOPBACK.has(options.host);
  if (!ours) return options;
  dials += 1;
  return { ...options, host: '127.0.0.1', port: to };
}

if (from && to) {
  const dial = net.Socket.prototype.connect;
  net.Socket.prototype.connect = function (first, ...rest) {
    // Node's own callers hand over one array of already sorted arguments, marked by a symbol.
    if (Array.isArray(first)) first[0] = redirected(first[0]);
    else first = redirected(first);
    return dial.call(this, first, ...rest);
  };
  process.on('exit', () => {
    if (dials > 0) return;
    console.error(`hop: the client dialled nothing on port ${from}`);
    process.exitCode = 70;
  });
}
