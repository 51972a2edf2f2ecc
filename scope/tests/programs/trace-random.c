// Random instructions on memory: the same numbers come out with and without the tracer. It is
// linked to a fixed place, since addresses are among the numbers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Instructions name their data relative to themselves, too, so both are in one place.
static unsigned char data[1 << 14] __attribute__((aligned(4096)));
static unsigned char code[1 << 14] __attribute__((aligned(4096)));
void *target;

// Registers in the processor's order, flags, and eight vectors.
struct state {
    unsigned long registers[16], flags, padding;
    unsigned char vectors[8][16];
};

void run_case(struct state *state);
__asm__(".globl run_case\n"
        "run_case:\n"
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rdi\n"
        "movups 144(%rdi), %xmm0; movups 160(%rdi), %xmm1; movups 176(%rdi), %xmm2\n"
        "movups 192(%rdi), %xmm3; movups 208(%rdi), %xmm4; movups 224(%rdi), %xmm5\n"
        "movups 240(%rdi), %xmm6; movups 256(%rdi), %xmm7\n"
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
        "movups %xmm0, 144(%rdi); movups %xmm1, 160(%rdi); movups %xmm2, 176(%rdi)\n"
        "movups %xmm3, 192(%rdi); movups %xmm4, 208(%rdi); movups %xmm5, 224(%rdi)\n"
        "movups %xmm6, 240(%rdi); movups %xmm7, 256(%rdi)\n"
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
    {"\x89", 1, -1, 0, 0}, {"\x8a", 1, -1, 0, 0}, {"\x8b", 1, -1, 0, 0}, {"\x8d", 1, -1, 0, 0},
    {"\x80", 1, 0, 1, 1}, {"\x80", 1, 7, 1, 0}, {"\x81", 1, 2, 4, 1}, {"\x81", 1, 5, 4, 1},
    {"\x83", 1, 6, 1, 1}, {"\x83", 1, 3, 1, 1}, {"\xc6", 1, 0, 1, 0}, {"\xc7", 1, 0, 4, 0},
    {"\xc0", 1, 0, 1, 0}, {"\xc1", 1, 4, 1, 0}, {"\xd1", 1, 5, 0, 0}, {"\xd3", 1, 7, 0, 0},
    {"\xd3", 1, 2, 0, 0}, {"\xf6", 1, 0, 1, 0}, {"\xf7", 1, 2, 0, 1}, {"\xf7", 1, 3, 0, 1},
    {"\xf7", 1, 4, 0, 0}, {"\xf7", 1, 5, 0, 0}, {"\xfe", 1, 0, 0, 1}, {"\xff", 1, 1, 0, 1},
    {"\x0f\x42", 2, -1, 0, 0}, {"\x0f\x4d", 2, -1, 0, 0}, {"\x0f\x94", 2, 0, 0, 0},
    {"\x0f\x9f", 2, 0, 0, 0}, {"\x0f\xaf", 2, -1, 0, 0}, {"\x0f\xb0", 2, -1, 0, 1},
    {"\x0f\xb1", 2, -1, 0, 1}, {"\x0f\xb6", 2, -1, 0, 0}, {"\x0f\xb7", 2, -1, 0, 0},
    {"\x0f\xbe", 2, -1, 0, 0}, {"\x0f\xbf", 2, -1, 0, 0}, {"\x0f\xba", 2, 4, 1, 0},
    {"\x0f\xba", 2, 5, 1, 1}, {"\x0f\xba", 2, 7, 1, 1}, {"\x0f\xc0", 2, -1, 0, 1},
    {"\x0f\xc1", 2, -1, 0, 1}, {"\x0f\xc7", 2, 1, 0, 0}, {"\x0f\x10", 2, -1, 0, 0},
    {"\x0f\x11", 2, -1, 0, 0}, {"\x0f\x12", 2, -1, 0, 0}, {"\x0f\x13", 2, -1, 0, 0},
    {"\x0f\x16", 2, -1, 0, 0}, {"\x0f\x17", 2, -1, 0, 0}, {"\x0f\xa4", 2, -1, 1, 0},
    {"\x0f\xad", 2, -1, 0, 0}, {"\x0f\x18", 2, 1, 0, 0}, {"\x8f", 1, 0, 0, 0},
};

static const unsigned char STRINGS[] = {0xa4, 0xa5, 0xa6, 0xa7, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf};

// Writes an instruction; how many bytes it has.
static int make(unsigned char *at) {
    unsigned char *start = at;
    if (next() % 12 == 0) {
        if (next() % 2)
            *at++ = next() % 2 ? 0xf3 : 0xf2;
        if (next() % 3 == 0)
            *at++ = 0x66;
        else if (next() % 3 == 0)
            *at++ = 0x48;
        *at++ = STRINGS[next() % sizeof STRINGS];
        return at - start;
    }
    int which = next() % (sizeof OPCODES / sizeof *OPCODES);
    int is_pop = OPCODES[which].bytes[0] == '\x8f';
    // `pop` takes what is pushed right before it.
    if (is_pop)
        *at++ = 0x50 | (next() % 2);
    int is_half = next() % 4 == 0 && OPCODES[which].bytes[0] != '\x0f' && !is_pop;
    if (is_half)
        *at++ = 0x66;
    if (OPCODES[which].locks && next() % 3 == 0)
        *at++ = 0xf0;
    int rex = is_pop ? 0x40 | (next() & 1) : 0x40 | (next() & 0xd);
    int reg = OPCODES[which].digit < 0 ? next() & 7 : OPCODES[which].digit;
    // Never the stack pointer, and never a vector beyond those that are compared.
    if (OPCODES[which].digit < 0 && reg == 4)
        reg = 2;
    if (OPCODES[which].len == 2 && (OPCODES[which].bytes[1] & 0xf0) == 0x10)
        rex &= ~4;
    // A word of 64 bits has no half by a prefix, and `cmpxchg16b` needs a place that is aligned.
    if (is_half || !memcmp(OPCODES[which].bytes, "\x0f\xc7", 2))
        rex &= ~8;
    *at++ = rex;
    memcpy(at, OPCODES[which].bytes, OPCODES[which].len);
    at += OPCODES[which].len;
    int constant = OPCODES[which].constant;
    if (constant == 4 && is_half)
        constant = 2;
    int displacement = (int)(next() % 512) - 256;
    unsigned char *patch = NULL;
    switch (next() % 5) {
    case 0: // [rip + x]
        *at++ = reg << 3 | 5;
        patch = at;
        at += 4;
        break;
    case 1: // [base + index * scale + x]; rcx or r9 is small
        rex &= ~2;
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
    default: // [base]
        *at++ = reg << 3 | 3;
    }
    for (int i = 0; i < constant; i++)
        *at++ = next();
    if (patch) {
        int to = data + 8192 + displacement - at;
        memcpy(patch, &to, 4);
    }
    return at - start;
}

static __thread unsigned long hash = 14695981039346656037ul;
static void add(const void *bytes, int len) {
    for (int i = 0; i < len; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211ul;
}

int main(int count, char **words) {
    int cases = count > 1 ? atoi(words[1]) : 1000;
    mprotect(code, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (int i = 0; i < (int)sizeof data; i++)
        data[i] = next();
    for (int i = 0; i < cases; i++) {
        struct state state = {0};
        for (int at = 0; at < 16; at++)
            state.registers[at] = next() << 32 ^ next();
        // What may be a base points to the middle, what may be an index is small.
        int bases[] = {3, 5, 6, 7, 11, 13, 14, 15};
        for (int at = 0; at < 8; at++)
            state.registers[bases[at]] = (unsigned long)data + 8192 + next() % 64;
        state.registers[1] = next() % 24;
        state.flags = 0x202 | (next() & 0x8d5) | (next() % 4 == 0 ? 0x400 : 0);
        for (int at = 0; at < (int)sizeof state.vectors; at++)
            ((unsigned char *)state.vectors)[at] = next();
        unsigned char *place = code + next() % 8192;
        place[make(place)] = 0xc3;
        target = place;
        run_case(&state);
        state.flags &= 0xcd5;
        add(&state.flags, 8);
        add(state.vectors, sizeof state.vectors);
        unsigned char copy[2048];
        // By a call, which is one event.
        volatile unsigned long len = sizeof copy;
        memcpy(copy, data + 8192 - 1024, len);
        add(copy, sizeof copy);
        add(state.registers, sizeof state.registers);
        if (i % (cases / 8 + 1) == 0)
            printf("%d %lx\n", i, hash);
    }
    printf("%lx\n", hash);
    return 0;
}
