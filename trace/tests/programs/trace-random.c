// Random instructions on memory: the same numbers come out with and without the tracer. It is
// linked to a fixed place, since addresses are among the numbers. Its arguments are the number of
// cases, and the first seed.
//
// Instructions that this processor does not have, or that fault, are left out when they are met; so
// encodings need not be exact.
#define _GNU_SOURCE
#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Instructions name their data relative to themselves, too, so all is in one place.
enum { SIZE = 1 << 15, MIDDLE = SIZE / 2, STATE = 4096, PLACES = 64 };
static unsigned char data[SIZE] __attribute__((aligned(4096)));
static unsigned char saved[STATE] __attribute__((aligned(4096)));
// Where calls and jumps through memory lead to: a `ret`.
static void *places[PLACES] __attribute__((aligned(4096)));
static unsigned char code[1 << 14] __attribute__((aligned(4096)));
void *target;

// Registers in the processor's order, flags, and what `xsave` stores.
struct state {
    unsigned long registers[16], flags, padding[47];
    unsigned char vectors[STATE];
} __attribute__((aligned(64)));

void run_case(struct state *state);
__asm__(".globl run_case\n"
        "run_case:\n"
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rdi\n"
        "mov $-1, %eax; mov $-1, %edx; xrstor64 512(%rdi)\n"
        "pushq 128(%rdi); popfq\n"
        "mov (%rdi), %rax; mov 8(%rdi), %rcx; mov 16(%rdi), %rdx; mov 24(%rdi), %rbx\n"
        "mov 40(%rdi), %rbp; mov 48(%rdi), %rsi; mov 64(%rdi), %r8; mov 72(%rdi), %r9\n"
        "mov 80(%rdi), %r10; mov 88(%rdi), %r11; mov 96(%rdi), %r12; mov 104(%rdi), %r13\n"
        "mov 112(%rdi), %r14; mov 120(%rdi), %r15; mov 56(%rdi), %rdi\n"
        "call *target(%rip)\n"
        "pushfq; push %rdi; mov 16(%rsp), %rdi\n"
        "mov %rax, (%rdi); mov %rcx, 8(%rdi); mov %rdx, 16(%rdi); mov %rbx, 24(%rdi)\n"
        "mov %rbp, 40(%rdi); mov %rsi, 48(%rdi); mov %r8, 64(%rdi); mov %r9, 72(%rdi)\n"
        "mov %r10, 80(%rdi); mov %r11, 88(%rdi); mov %r12, 96(%rdi); mov %r13, 104(%rdi)\n"
        "mov %r14, 112(%rdi); mov %r15, 120(%rdi)\n"
        "pop %rax; mov %rax, 56(%rdi); pop %rax; mov %rax, 128(%rdi); cld\n"
        "mov $-1, %eax; mov $-1, %edx; xsave64 512(%rdi)\n"
        "pop %rdi; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n");

// Variables of threads are not traced, which saves time.
static __thread unsigned long seed = 1;
static unsigned long next(void) {
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return seed >> 29;
}

// Opcodes with one operand in memory: bytes before the operand, the digit in its place or -1, and
// bytes of a constant behind it: 1, 2 for half of what 4 is with the prefix 66, or 0.
static const struct {
    const char *bytes;
    int len, digit, constant, locks;
} OPCODES[] = {
    {"\x00", 1, -1, 0, 1}, {"\x01", 1, -1, 0, 1}, {"\x02", 1, -1, 0, 0}, {"\x03", 1, -1, 0, 0},
    {"\x09", 1, -1, 0, 1}, {"\x0b", 1, -1, 0, 0}, {"\x11", 1, -1, 0, 1}, {"\x13", 1, -1, 0, 0},
    {"\x19", 1, -1, 0, 1}, {"\x1b", 1, -1, 0, 0}, {"\x21", 1, -1, 0, 1}, {"\x23", 1, -1, 0, 0},
    {"\x29", 1, -1, 0, 1}, {"\x2b", 1, -1, 0, 0}, {"\x31", 1, -1, 0, 1}, {"\x33", 1, -1, 0, 0},
    {"\x38", 1, -1, 0, 0}, {"\x39", 1, -1, 0, 0}, {"\x3a", 1, -1, 0, 0}, {"\x3b", 1, -1, 0, 0},
    {"\x63", 1, -1, 0, 0}, {"\x69", 1, -1, 4, 0}, {"\x6b", 1, -1, 1, 0}, {"\x84", 1, -1, 0, 0},
    {"\x85", 1, -1, 0, 0}, {"\x86", 1, -1, 0, 1}, {"\x87", 1, -1, 0, 1}, {"\x88", 1, -1, 0, 0},
    {"\x89", 1, -1, 0, 0}, {"\x8a", 1, -1, 0, 0}, {"\x8b", 1, -1, 0, 0}, {"\x8c", 1, 3, 0, 0},
    {"\x8d", 1, -1, 0, 0}, {"\x80", 1, 0, 1, 1}, {"\x80", 1, 7, 1, 0}, {"\x81", 1, 2, 4, 1},
    {"\x81", 1, 5, 4, 1}, {"\x83", 1, 6, 1, 1}, {"\x83", 1, 3, 1, 1}, {"\xc6", 1, 0, 1, 0},
    {"\xc7", 1, 0, 4, 0}, {"\xc0", 1, 0, 1, 0}, {"\xc1", 1, 4, 1, 0}, {"\xd1", 1, 5, 0, 0},
    {"\xd3", 1, 7, 0, 0}, {"\xd3", 1, 2, 0, 0}, {"\xf6", 1, 0, 1, 0}, {"\xf7", 1, 2, 0, 1},
    {"\xf7", 1, 3, 0, 1}, {"\xf7", 1, 4, 0, 0}, {"\xf7", 1, 5, 0, 0}, {"\xf7", 1, 6, 0, 0},
    {"\xf6", 1, 7, 0, 0}, {"\xfe", 1, 0, 0, 1}, {"\xff", 1, 1, 0, 1},
    // Numbers of the old kind.
    {"\xd9", 1, 0, 0, 0}, {"\xd9", 1, 3, 0, 0}, {"\xdd", 1, 0, 0, 0}, {"\xdd", 1, 3, 0, 0},
    {"\xdb", 1, 5, 0, 0}, {"\xdb", 1, 7, 0, 0}, {"\xdf", 1, 5, 0, 0}, {"\xd8", 1, 0, 0, 0},
    {"\x0f\x42", 2, -1, 0, 0}, {"\x0f\x4d", 2, -1, 0, 0}, {"\x0f\x94", 2, 0, 0, 0},
    {"\x0f\x9f", 2, 0, 0, 0}, {"\x0f\xaf", 2, -1, 0, 0}, {"\x0f\xb0", 2, -1, 0, 1},
    {"\x0f\xb1", 2, -1, 0, 1}, {"\x0f\xb6", 2, -1, 0, 0}, {"\x0f\xb7", 2, -1, 0, 0},
    {"\x0f\xbe", 2, -1, 0, 0}, {"\x0f\xbf", 2, -1, 0, 0}, {"\x0f\xba", 2, 4, 1, 0},
    {"\x0f\xba", 2, 5, 1, 1}, {"\x0f\xba", 2, 7, 1, 1}, {"\x0f\xbc", 2, -1, 0, 0},
    {"\x0f\xbd", 2, -1, 0, 0}, {"\x0f\xc0", 2, -1, 0, 1}, {"\x0f\xc1", 2, -1, 0, 1},
    {"\x0f\xc3", 2, -1, 0, 0}, {"\x0f\xc7", 2, 1, 0, 1}, {"\x0f\xc7", 2, 1, 0, 1},
    {"\x0f\x10", 2, -1, 0, 0}, {"\x0f\x11", 2, -1, 0, 0}, {"\x0f\x12", 2, -1, 0, 0},
    {"\x0f\x13", 2, -1, 0, 0}, {"\x0f\x16", 2, -1, 0, 0}, {"\x0f\x17", 2, -1, 0, 0},
    {"\x0f\x28", 2, -1, 0, 0}, {"\x0f\x29", 2, -1, 0, 0}, {"\x0f\x2a", 2, -1, 0, 0},
    {"\x0f\x2e", 2, -1, 0, 0}, {"\x0f\x58", 2, -1, 0, 0}, {"\x0f\x6f", 2, -1, 0, 0},
    {"\x0f\x7f", 2, -1, 0, 0}, {"\x0f\xd6", 2, -1, 0, 0}, {"\x0f\xe7", 2, -1, 0, 0},
    {"\x0f\xa4", 2, -1, 1, 0}, {"\x0f\xad", 2, -1, 0, 0}, {"\x0f\x18", 2, 1, 0, 0},
    {"\x0f\x0d", 2, 1, 0, 0}, {"\x0f\xae", 2, 7, 0, 0}, {"\x0f\xae", 2, 3, 0, 0},
    {"\x0f\x38\xf0", 3, -1, 0, 0}, {"\x0f\x38\xf1", 3, -1, 0, 0}, {"\x0f\x38\xf6", 3, -1, 0, 0},
    {"\x0f\x38\x00", 3, -1, 0, 0}, {"\x0f\x38\x2a", 3, -1, 0, 0}, {"\x8f", 1, 0, 0, 0},
};

// Of instructions of vectors: map, prefix, opcode, and whether a constant follows.
static const unsigned char VECTORS[][4] = {
    {1, 0, 0x10}, {1, 0, 0x11}, {1, 1, 0x10}, {1, 1, 0x11}, {1, 2, 0x10}, {1, 2, 0x11},
    {1, 3, 0x10}, {1, 3, 0x11}, {1, 0, 0x12}, {1, 0, 0x13}, {1, 0, 0x16}, {1, 0, 0x17},
    {1, 2, 0x12}, {1, 3, 0x12}, {1, 2, 0x16}, {1, 0, 0x28}, {1, 0, 0x29}, {1, 0, 0x2b},
    {1, 2, 0x2a}, {1, 3, 0x2c}, {1, 0, 0x2e}, {1, 1, 0x2f}, {1, 0, 0x51}, {1, 0, 0x54},
    {1, 1, 0x56}, {1, 0, 0x58}, {1, 1, 0x59}, {1, 2, 0x5c}, {1, 3, 0x5d}, {1, 0, 0x5a},
    {1, 0, 0x5b}, {1, 2, 0x5b}, {1, 1, 0x62}, {1, 1, 0x66}, {1, 1, 0x6b}, {1, 1, 0x6e},
    {1, 1, 0x6f}, {1, 2, 0x6f}, {1, 3, 0x6f}, {1, 2, 0x7e}, {1, 1, 0x7e}, {1, 1, 0x7f},
    {1, 2, 0x7f}, {1, 3, 0x7f}, {1, 1, 0x70, 1}, {1, 1, 0x74}, {1, 0, 0xc2, 1}, {1, 0, 0xc6, 1},
    {1, 1, 0xc4, 1}, {1, 1, 0xd6}, {1, 1, 0xdb}, {1, 1, 0xe7}, {1, 1, 0xeb}, {1, 1, 0xef},
    {1, 3, 0xf0}, {1, 1, 0xf4}, {1, 1, 0xf5}, {1, 1, 0xfa}, {1, 1, 0xfc}, {1, 1, 0xfe},
    {1, 3, 0xe6}, {1, 0, 0x90}, {1, 0, 0x91}, {2, 1, 0x00}, {2, 1, 0x0c}, {2, 1, 0x13},
    {2, 1, 0x16}, {2, 1, 0x17}, {2, 1, 0x18}, {2, 1, 0x19}, {2, 1, 0x1a}, {2, 1, 0x1b},
    {2, 1, 0x1c}, {2, 1, 0x20}, {2, 1, 0x23}, {2, 1, 0x29}, {2, 1, 0x2a}, {2, 1, 0x2b},
    {2, 1, 0x2c}, {2, 1, 0x2d}, {2, 1, 0x2e}, {2, 1, 0x2f}, {2, 1, 0x30}, {2, 1, 0x32},
    {2, 1, 0x34}, {2, 2, 0x30}, {2, 2, 0x31}, {2, 2, 0x33}, {2, 2, 0x35}, {2, 2, 0x11},
    {2, 1, 0x36}, {2, 1, 0x38}, {2, 1, 0x3f}, {2, 1, 0x40}, {2, 1, 0x45}, {2, 1, 0x47},
    {2, 1, 0x58}, {2, 1, 0x59}, {2, 1, 0x5a}, {2, 1, 0x5b}, {2, 1, 0x62}, {2, 1, 0x63},
    {2, 1, 0x64}, {2, 1, 0x75}, {2, 1, 0x78}, {2, 1, 0x79}, {2, 1, 0x7d}, {2, 1, 0x88},
    {2, 1, 0x89}, {2, 1, 0x8a}, {2, 1, 0x8b}, {2, 1, 0x8c}, {2, 1, 0x8d}, {2, 1, 0x8e},
    {2, 1, 0x98}, {2, 1, 0xa8}, {2, 1, 0xb9}, {2, 1, 0xc4}, {2, 1, 0xcf}, {2, 1, 0xdc},
    {2, 0, 0xf2}, {2, 0, 0xf3}, {2, 0, 0xf5}, {2, 2, 0xf5}, {2, 3, 0xf5}, {2, 3, 0xf6},
    {2, 0, 0xf7}, {2, 1, 0xf7}, {2, 2, 0xf7}, {2, 3, 0xf7}, {3, 1, 0x00, 1}, {3, 1, 0x01, 1},
    {3, 1, 0x03, 1}, {3, 1, 0x08, 1}, {3, 1, 0x0b, 1}, {3, 1, 0x0c, 1}, {3, 1, 0x0f, 1},
    {3, 1, 0x14, 1}, {3, 1, 0x15, 1}, {3, 1, 0x16, 1}, {3, 1, 0x18, 1}, {3, 1, 0x19, 1},
    {3, 1, 0x1a, 1}, {3, 1, 0x1b, 1}, {3, 1, 0x1d, 1}, {3, 1, 0x20, 1}, {3, 1, 0x21, 1},
    {3, 1, 0x22, 1}, {3, 1, 0x25, 1}, {3, 1, 0x38, 1}, {3, 1, 0x39, 1}, {3, 1, 0x3a, 1},
    {3, 1, 0x3b, 1}, {3, 1, 0x3e, 1}, {3, 1, 0x3f, 1}, {3, 1, 0x40, 1}, {3, 1, 0x43, 1},
    {3, 1, 0x46, 1}, {3, 1, 0x4a, 1}, {3, 1, 0x4c, 1}, {3, 1, 0x54, 1}, {3, 1, 0x63, 1},
    {3, 3, 0xf0, 1},
};

static const unsigned char STRINGS[] = {0xa4, 0xa5, 0xa6, 0xa7, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf};

// Writes an operand behind an opcode; where a constant follows, its bytes.
static unsigned char *operand(unsigned char *at, int reg, int constant) {
    int displacement = (int)(next() % 512) - 256;
    unsigned char *patch = NULL;
    switch (next() % 6) {
    case 0: // [rip + x]
        *at++ = reg << 3 | 5;
        patch = at;
        at += 4;
        break;
    case 1: // [base + index * scale + x]; rcx or r9 is small
        *at++ = 0x44 | reg << 3;
        *at++ = (next() & 3) << 6 | 1 << 3 | 3;
        *at++ = displacement;
        break;
    case 2: // [base + x]
        *at++ = 0x40 | reg << 3 | (next() % 2 ? 6 : 7);
        *at++ = displacement;
        break;
    case 3:
        *at++ = 0x80 | reg << 3 | 5;
        memcpy(at, &displacement, 4);
        at += 4;
        break;
    case 4: // [x]
        *at++ = 4 | reg << 3;
        *at++ = 0x25;
        displacement += (int)(long)data + MIDDLE;
        memcpy(at, &displacement, 4);
        at += 4;
        break;
    default: // [base]
        *at++ = reg << 3 | 3;
    }
    for (int i = 0; i < constant; i++)
        *at++ = next();
    if (patch) {
        int to = data + MIDDLE + (next() % 4 ? displacement : displacement & -64) - at;
        memcpy(patch, &to, 4);
    }
    return at;
}

static unsigned char *vector(unsigned char *at) {
    const unsigned char *it = VECTORS[next() % (sizeof VECTORS / sizeof *VECTORS)];
    int reg = next() & 7;
    // The results of some are general registers, of which one is the stack pointer.
    if (reg == 4)
        reg = 2;
    int is_wide = next() & 1, extended = next() & 1, base = next() & 1, other = next() & 15;
    if (other == 4)
        other = 3;
    if (next() % 2) {
        *at++ = 0xc4;
        *at++ = !extended << 7 | 1 << 6 | !base << 5 | it[0];
        *at++ = is_wide << 7 | (next() % 3 ? ~other & 15 : 15) << 3 | (next() & 1) << 2 | it[1];
    } else {
        *at++ = 0x62;
        *at++ = !extended << 7 | 1 << 6 | !base << 5 | (next() & 1) << 4 | it[0];
        *at++ = is_wide << 7 | (next() % 3 ? ~other & 15 : 15) << 3 | 4 | it[1];
        *at++ = (next() % 4 == 0) << 7 | (next() & 3) << 5 | (next() % 8 == 0) << 4 |
                (next() % 4 != 0) << 3 | (next() & 1 ? next() & 7 : 0);
    }
    *at++ = it[2];
    return operand(at, reg, it[3]);
}

// A gather, or a scatter: indices are in vector 1 or 17, the mask is vector 2 or mask 1 to 3.
static unsigned char *elements(unsigned char *at) {
    int is_store = next() & 1;
    int base = next() & 1, wide = next() & 1;
    if (next() % 2) {
        *at++ = 0xc4;
        *at++ = 1 << 7 | 1 << 6 | !base << 5 | 2;
        *at++ = wide << 7 | (~2 & 15) << 3 | (next() & 1) << 2 | 1;
        is_store = 0;
    } else {
        *at++ = 0x62;
        *at++ = 1 << 7 | 1 << 6 | !base << 5 | (next() & 1) << 4 | 2;
        *at++ = wide << 7 | 15 << 3 | 4 | 1;
        *at++ = (next() % 3) << 5 | (next() & 1) << 3 | (1 + next() % 3);
    }
    *at++ = (is_store ? 0xa0 : 0x90) | (next() & 3);
    *at++ = 0x44 | 3 << 3;
    *at++ = (next() & 3) << 6 | 1 << 3 | 3;
    *at++ = next();
    return at;
}

// Whether addresses have 32 bits.
static __thread int is_short;

// `call`, `jmp` and `push` through memory, whose operands are in `places` or anywhere.
static unsigned char *branch(unsigned char *at) {
    int digit = (int[]){2, 4, 6}[next() % 3];
    void *place = digit == 6 ? data + MIDDLE + next() % 512 : (void *)&places[next() % PLACES];
    unsigned char *start = at;
    *at++ = 0xff;
    if (next() % 2) {
        *at++ = digit << 3 | 5;
        int to = (unsigned char *)place - (at + 4);
        memcpy(at, &to, 4);
        at += 4;
    } else {
        // [r8 + x], of which r8 is the data's start.
        memmove(start + 1, start, 1);
        *start = 0x41;
        at++;
        *at++ = 0x80 | digit << 3 | 0;
        int to = (unsigned char *)place - data;
        memcpy(at, &to, 4);
        at += 4;
    }
    if (digit == 6)
        *at++ = 0x58 | (next() & 1);
    return at;
}

static unsigned char *special(unsigned char *at) {
    switch (next() % 8) {
    case 0: // mov with an address of 64 bits
        if (next() % 2)
            *at++ = next() % 2 ? 0x48 : 0x66;
        *at++ = 0xa0 | (next() & 3);
        *(void **)at = data + MIDDLE + next() % 512;
        return at + (is_short ? 4 : 8);
    case 1: // xlat
        *at++ = 0xd7;
        return at;
    case 2: // enter, leave
        memcpy(at, (unsigned char[]){0xc8, 16, 0, next() % 4, 0xc9}, 5);
        return at + 5;
    case 3: // maskmovdqu, whose operand is [rdi]
        memcpy(at, "\x66\x0f\xf7\xca", 4);
        return at + 4;
    case 4: { // xsave, xrstor, xsavec, xsaveopt, fxsave, fxrstor
        static const unsigned char WHICH[][2] = {{0xae, 4}, {0xae, 5}, {0xc7, 4},
                                                 {0xae, 6}, {0xae, 0}, {0xae, 1}};
        const unsigned char *which = WHICH[next() % 6];
        if (next() % 2)
            *at++ = 0x48;
        *at++ = 0x0f;
        *at++ = which[0];
        *at++ = which[1] << 3 | 5;
        int to = saved - (at + 4);
        memcpy(at, &to, 4);
        return at + 4;
    }
    case 5: // bt and its relatives, whose bit r9 is far away
        if (next() % 3 == 0)
            *at++ = 0xf0;
        *at++ = next() % 2 ? 0x4c : 0x44;
        *at++ = 0x0f;
        *at++ = (unsigned char[]){0xa3, 0xab, 0xb3, 0xbb}[next() & 3];
        return operand(at, 1, 0);
    case 6:
        return branch(at);
    default:
        return elements(at);
    }
}

// Writes an instruction, or two; how many bytes they have.
static int make(unsigned char *at) {
    unsigned char *start = at;
    // Segments: most mean nothing, and the base of one is 0. Addresses of 32 bits.
    if (next() % 12 == 0)
        *at++ = (unsigned char[]){0x65, 0x65, 0x2e, 0x3e, 0x26, 0x36}[next() % 6];
    is_short = next() % 24 == 0;
    if (is_short)
        *at++ = 0x67;
    int kind = next() % 16;
    if (kind == 0) {
        if (next() % 2)
            *at++ = next() % 2 ? 0xf3 : 0xf2;
        if (next() % 3 == 0)
            *at++ = 0x66;
        else if (next() % 3 == 0)
            *at++ = 0x48;
        *at++ = STRINGS[next() % sizeof STRINGS];
        return at - start;
    }
    if (kind < 3)
        return special(at) - start;
    if (kind < 8)
        return vector(at) - start;
    int which = next() % (sizeof OPCODES / sizeof *OPCODES);
    int is_pop = OPCODES[which].bytes[0] == '\x8f';
    // `pop` takes what is pushed right before it.
    if (is_pop) {
        at = start;
        *at++ = 0x50 | (next() % 2);
    }
    int is_half = next() % 4 == 0 && !is_pop;
    if (is_half)
        *at++ = 0x66;
    else if (OPCODES[which].len > 1 && next() % 4 == 0)
        *at++ = next() % 2 ? 0xf3 : 0xf2;
    if (OPCODES[which].locks && next() % 3 == 0)
        *at++ = 0xf0;
    int rex = is_pop ? 0x40 | (next() & 1) : 0x40 | (next() & 0xd);
    int reg = OPCODES[which].digit < 0 ? next() & 7 : OPCODES[which].digit;
    // Never the stack pointer.
    if (OPCODES[which].digit < 0 && reg == 4)
        reg = 2;
    if (is_half && OPCODES[which].bytes[0] != '\x0f')
        rex &= ~8;
    *at++ = rex;
    memcpy(at, OPCODES[which].bytes, OPCODES[which].len);
    at += OPCODES[which].len;
    int constant = OPCODES[which].constant;
    if (constant == 4 && is_half)
        constant = 2;
    return operand(at, reg, constant) - start;
}

static __thread unsigned long hash = 14695981039346656037ul;
static void add(const void *bytes, int len) {
    for (int i = 0; i < len / 8; i++) {
        hash = (hash ^ ((const unsigned long *)bytes)[i]) * 1099511628211ul;
        hash ^= hash >> 29;
    }
}

static sigjmp_buf back;
static void leave(int signal, siginfo_t *info, void *context) {
    siglongjmp(back, signal);
}

// Where parts of the state lie, and how long they are: 2 is of 32 bytes, 5 to 7 of 64 bytes.
static __thread unsigned parts[8][2];

static const int SIGNALS[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP};
static __thread struct state state, fresh;
static __thread int done, left[32];

static void begin(void) {
    mprotect(code, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (int i = 0; i < SIZE; i++)
        data[i] = next();
    code[sizeof code - 1] = 0xc3;
    for (int i = 0; i < PLACES; i++)
        places[i] = &code[sizeof code - 1];
    parts[1][0] = 160, parts[1][1] = 256;
    unsigned low, high, rest;
    __cpuid_count(0xd, 0, low, rest, rest, high);
    for (int part = 2; part < 8; part++) {
        unsigned len, place;
        __cpuid_count(0xd, part, len, place, rest, rest);
        if (low >> part & 1 && (part == 2 || part >= 5) && place + len <= STATE)
            parts[part][0] = place, parts[part][1] = len;
    }
    struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < 5; i++)
        sigaction(SIGNALS[i], &action, NULL);
    for (int part = 1; part < 8; part++)
        if (parts[part][1])
            fresh.vectors[512] |= 1 << part;
    fresh.vectors[0] = 0x7f, fresh.vectors[1] = 3; // The control word of old numbers.
    fresh.vectors[24] = 0x80, fresh.vectors[25] = 0x1f; // That of vectors: no exceptions.
}

// Runs the instruction at a place from a random state.
static void run(unsigned char *place) {
    state = fresh;
    for (int at = 0; at < 16; at++)
        state.registers[at] = next() << 32 ^ next();
    // What may be a base points to the middle, what may be an index is small.
    int bases[] = {3, 5, 6, 7, 11, 13, 14, 15};
    for (int at = 0; at < 8; at++)
        state.registers[bases[at]] = (unsigned long)data + MIDDLE + next() % 64;
    if (next() % 4 == 0)
        state.registers[3] &= -64ul;
    state.registers[1] = next() % 24;
    state.registers[9] = (long)(next() % 8192) - 4096;
    state.registers[8] = (unsigned long)data;
    state.flags = 0x202 | (next() & 0x8d5) | (next() % 4 == 0 ? 0x400 : 0);
    for (int part = 1; part < 8; part++)
        for (unsigned at = 0; at < parts[part][1]; at += 8) {
            unsigned long word = next() << 32 ^ next();
            memcpy(state.vectors + parts[part][0] + at, &word, 8);
        }
    // Indices in vectors 1 and 17.
    int is_long = next() & 1;
    for (int part = 1; part < 8; part++) {
        int size = (int[]){0, 16, 16, 0, 0, 0, 32, 64}[part];
        for (int at = 0; parts[part][1] && at < size; at += 4) {
            int index = is_long && at % 8 ? 0 : next() % 512;
            memcpy(state.vectors + parts[part][0] + size + at, &index, 4);
        }
    }
    target = place;
    int signal = sigsetjmp(back, 1);
    if (signal) {
        left[signal]++;
    } else {
        run_case(&state);
        done++;
        state.flags &= 0xcd5;
        add(&state.flags, 8);
        for (int part = 1; part < 8; part++)
            add(state.vectors + parts[part][0], parts[part][1]);
        add(state.registers, sizeof state.registers);
    }
    unsigned char copy[4096];
    // By a call, which is one event.
    volatile unsigned long len = done % 64 ? 1024 : sizeof copy;
    memcpy(copy, data + MIDDLE - len / 2, len);
    add(copy, len);
}

static void finish(int cases) {
    for (int at = 0; at < SIZE; at += 4096) {
        unsigned char copy[4096];
        volatile unsigned long len = sizeof copy;
        memcpy(copy, data + at, len);
        add(copy, len);
    }
    printf("%lx: %d of %d", hash, done, cases);
    for (int i = 0; i < 5; i++)
        printf(", %d by signal %d", left[SIGNALS[i]], SIGNALS[i]);
    printf("\n");
}

int main(int count, char **words) {
    int cases = count > 1 ? atoi(words[1]) : 1000;
    seed = count > 2 ? atoi(words[2]) : 1;
    begin();
    for (int i = 0; i < cases; i++) {
        unsigned char *place = code + next() % 8192;
        place[make(place)] = 0xc3;
        run(place);
        if (i % (cases / 8 + 1) == 0)
            printf("%d %lx\n", i, hash);
    }
    finish(cases);
    return 0;
}
