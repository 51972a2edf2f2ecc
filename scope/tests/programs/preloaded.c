// A library that a user preloads.
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void start(void) {
    char *block = malloc(4321);
    *(volatile char *)block = 1;
    if (write(1, "preloaded\n", 10) != 10)
        _exit(1);
}
