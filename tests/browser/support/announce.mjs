// Announces a scenario as mDNS does (RFC 6762 section 11: a response by unicast counts for whoever is on the link), but straight to the
// daemon's own port on loopback: nothing is sent to any network.
import { createSocket } from 'node:dgram';

const HOST = 'neighbour.local';
const SERVICE = '_agent-tools._tcp.local';
/** Seconds; what hosts commonly say, and longer than any test. */
const TTL = 4_500;

/** A UDP port that nobody uses. */
export async function freePort() {
  const socket = createSocket('udp4');
  await new Promise((bound) => socket.bind(0, '127.0.0.1', bound));
  const { port } = socket.address();
  await new Promise((closed) => socket.close(closed));
  return port;
}

function name(text) {
  const labels = text.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function record(owner, type, unique, data) {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  // The top bit says that these are all records of that name and type (RFC 6762 section 10.2).
  head.writeUInt16BE(unique ? 0x8001 : 1, 2);
  head.writeUInt32BE(TTL, 4);
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([name(owner), head, data]);
}

/** The packet that announces `instance` at a port of this machine. */
export function announcement(instance, port, texts) {
  const full = `${instance}.${SERVICE}`;
  const server = Buffer.alloc(6);
  server.writeUInt16BE(port, 4);
  const text = texts.map((entry) => Buffer.concat([Buffer.from([entry.length]), Buffer.from(entry)]));
  const records = [
    record(SERVICE, 12, false, name(full)),
    record(full, 33, true, Buffer.concat([server, name(HOST)])),
    record(full, 16, true, Buffer.concat(text)),
    record(HOST, 1, true, Buffer.from([127, 0, 0, 1])),
  ];
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0x8400, 2);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, ...records]);
}

/** Sends it. Announce again until it is heard: a packet that comes before somebody listens is lost. */
export async function announce(mdnsPort, instance, port, texts) {
  const socket = createSocket('udp4');
  await new Promise((bound) => socket.bind(0, '127.0.0.1', bound));
  const packet = announcement(instance, port, texts);
  await new Promise((sent, failed) => socket.send(packet, mdnsPort, '127.0.0.1', (error) => (error ? failed(error) : sent())));
  await new Promise((closed) => socket.close(closed));
}
