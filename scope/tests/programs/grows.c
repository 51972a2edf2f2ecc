/* Grows until it is ended, or for a minute. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) static void *grow_slowly(void) {
    return malloc(1000);
}

int main(void) {
    alarm(60);
    for (;;) {
        void *volatile kept = grow_slowly();
        (void)kept;
        free(malloc(30));
        usleep(1000);
    }
}
