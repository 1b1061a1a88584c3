interface Machine {
  /** `e_machine` of ELF. */
  readonly number: number;
  readonly code: string;
}

/** Machine code that waits for ever: in a system call, and in it again where a signal has interrupted that. */
const MACHINES: Readonly<Record<string, Machine>> = {
  // mov eax, 34 (pause); syscall; jmp to the first
  amd64: { number: 62, code: 'b822000000 0f05 ebf7' },
  // mov x0, 0; mov x1, 0; mov x2, 0; mov x3, 0; mov x8, 73 (ppoll); svc 0; b to the first
  arm64: { number: 183, code: '000080d2 010080d2 020080d2 030080d2 280980d2 010000d4 faffff17' },
};

const FILE_HEADER = 64;
const PROGRAM_HEADER = 56;
/** Where programs lie that are made for one address. */
const BASE = 0x40_0000n;
/** Covers the pages of every kernel; a segment lies in its file where it lies in one of them. */
const ALIGNMENT = 0x1_0000n;

/**
 * A whole Linux program that only waits, for processors as images name them; undefined for others than `amd64` and `arm64`. It is
 * a static executable of one segment (System V ABI: ELF-64, little endian), which reads nothing and writes nothing.
 */
export function waitingProgram(architecture: string): Buffer | undefined {
  const machine = Object.hasOwn(MACHINES, architecture) ? MACHINES[architecture] : undefined;
  if (machine === undefined) return undefined;
  const code = Buffer.from(machine.code.replaceAll(' ', ''), 'hex');
  const start = FILE_HEADER + PROGRAM_HEADER;
  const size = start + code.length;
  const file = Buffer.alloc(start);
  // 64 bits, little endian, version 1
  file.write('\x7fELF\x02\x01\x01', 'latin1');
  const [ET_EXEC, PT_LOAD, READ_AND_RUN] = [2, 1, 5];
  file.writeUInt16LE(ET_EXEC, 16);
  file.writeUInt16LE(machine.number, 18);
  file.writeUInt32LE(1, 20);
  file.writeBigUInt64LE(BASE + BigInt(start), 24);
  file.writeBigUInt64LE(BigInt(FILE_HEADER), 32);
  file.writeUInt16LE(FILE_HEADER, 52);
  file.writeUInt16LE(PROGRAM_HEADER, 54);
  file.writeUInt16LE(1, 56);
  file.writeUInt32LE(PT_LOAD, FILE_HEADER);
  file.writeUInt32LE(READ_AND_RUN, FILE_HEADER + 4);
  file.writeBigUInt64LE(BASE, FILE_HEADER + 16);
  file.writeBigUInt64LE(BASE, FILE_HEADER + 24);
  file.writeBigUInt64LE(BigInt(size), FILE_HEADER + 32);
  file.writeBigUInt64LE(BigInt(size), FILE_HEADER + 40);
  file.writeBigUInt64LE(ALIGNMENT, FILE_HEADER + 48);
  return Buffer.concat([file, code]);
}
