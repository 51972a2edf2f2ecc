// A child of `fork` closes spans of its parent, which has no such place in the child's capture.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

unsigned long ccscope_span_new(const char *, size_t) __attribute__((weak));
void ccscope_span_enter(unsigned long) __attribute__((weak));
void ccscope_span_exit(unsigned long) __attribute__((weak));
void ccscope_span_close(unsigned long) __attribute__((weak));
void ccscope_region_enter(const char *, size_t) __attribute__((weak));
void ccscope_region_exit(void) __attribute__((weak));

__attribute__((noinline)) static void touch(volatile char *block) { *block = 1; }

__attribute__((noinline)) static void work(void) {
    unsigned long own = ccscope_span_new("work", 4);
    ccscope_span_enter(own);
    for (int i = 0; i < 100; i++)
        touch(malloc(64));
    ccscope_span_exit(own);
    ccscope_span_close(own);
}

int main(int argc, char **argv) {
    int generations = argc > 1 ? atoi(argv[1]) : 1;
    unsigned long spans[10];
    for (int i = 0; i < 10; i++)
        spans[i] = ccscope_span_new("span", 4);
    ccscope_region_enter("region", 6);
    ccscope_span_enter(spans[0]);
    while (generations > 0 && fork() == 0) {
        work();
        for (int i = 0; i < 10; i++) {
            ccscope_span_enter(spans[i]);
            touch(malloc(64));
            ccscope_span_exit(spans[i]);
            ccscope_span_close(spans[i]);
        }
        ccscope_region_exit();
        work();
        if (--generations == 0)
            _exit(0);
    }
    int status;
    wait(&status);
    ccscope_span_exit(spans[0]);
    for (int i = 0; i < 10; i++)
        ccscope_span_close(spans[i]);
    printf("child status %x\n", status);
    return status != 0;
}
