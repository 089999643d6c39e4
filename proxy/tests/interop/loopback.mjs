// Preload for servers that are not ours (`node --import ./loopback.mjs server.js`).
//
// Listeners that would bind every interface are bound to 127.0.0.1. `listen` has to stay synchronous:
// the conformance suite reads the port right after calling it, and naming a host would make Node look
// it up first. So the address is put in after Node resolved its arguments.
//
// With INTEROP_READY_FILE set, the first port that gets bound is written there as {"port": N}.
import { renameSync, writeFileSync } from 'node:fs';
import net from 'node:net';

const WILDCARDS = new Set([undefined, null, '', '::', '0.0.0.0']);
const bind = net.Server.prototype._listen2;
let readyFile = process.env.INTEROP_READY_FILE;

net.Server.prototype._listen2 = function (address, port, family, ...rest) {
  if (Number.isInteger(port) && port >= 0 && WILDCARDS.has(address)) {
    address = '127.0.0.1';
    family = 4;
  }
  if (readyFile) {
    const file = readyFile;
    readyFile = undefined;
    this.once('listening', () => {
      writeFileSync(`${file}.part`, JSON.stringify({ port: this.address().port }));
      renameSync(`${file}.part`, file);
    });
  }
  return bind.call(this, address, port, family, ...rest);
};
