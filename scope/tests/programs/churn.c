// Allocates and frees a million chunks of 24 bytes, and keeps 100 of 32.
#include <stdlib.h>

int main(void) {
    for (int i = 0; i < 1000000; i++) {
        void *volatile chunk = malloc(24);
        free(chunk);
    }
    for (int i = 0; i < 100; i++) {
        void *volatile chunk = malloc(32);
        (void)chunk;
    }
    return 0;
}
