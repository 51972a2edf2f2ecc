// The instructions of trace-random.c, but in the program's file, where `--patch` finds them, and each
// many times. Its arguments are the number of instructions, the first seed, and how often each runs;
// or, for the last, a copy of this program into which the instructions are written.
#define main main_of_random
#include "trace-random.c"
#undef main
#include <fcntl.h>
#include <unistd.h>

enum { PITCH = 32, MOST = 1 << 13 };
extern char __executable_start;
extern unsigned char made[MOST * PITCH];
// Each a function: bytes that are no instruction keep those around them from being patched.
__asm__(".pushsection .text\n"
        ".globl made\n"
        ".balign 4096\n"
        "made:\n"
        ".altmacro\n"
        ".macro piece number\n"
        ".type made_\\number, @function\n"
        "made_\\number: .skip 32\n"
        ".endm\n"
        ".set number, 0\n"
        ".rept 8192\n"
        "piece %number\n"
        ".set number, number + 1\n"
        ".endr\n"
        ".balign 4096\n"
        ".popsection\n");

static int write_into(const char *path, int number) {
    mprotect(made, sizeof made, PROT_READ | PROT_WRITE | PROT_EXEC);
    memset(made, 0x90, sizeof made);
    for (int i = 0; i < number; i++) {
        unsigned char *place = made + i * PITCH, *end = place + make(place);
        // What follows is part of a jump, if there is one.
        *end++ = 0xc3;
        for (int at = 0; at < 4; at++)
            *end++ = next();
    }
    int file = open(path, O_WRONLY);
    off_t at = (char *)made - &__executable_start;
    return pwrite(file, made, sizeof made, at) == sizeof made ? 0 : 1;
}

int main(int count, char **words) {
    int number = atoi(words[1]), rounds = atoi(words[3]);
    seed = atoi(words[2]);
    begin();
    if (rounds == 0)
        return write_into(words[3], number);
    for (int i = 0; i < number; i++) {
        for (int round = 0; round < rounds; round++)
            run(made + i * PITCH);
        if (i % (number / 8 + 1) == 0)
            printf("%d %lx\n", i, hash);
    }
    finish(number * rounds);
    return 0;
}
