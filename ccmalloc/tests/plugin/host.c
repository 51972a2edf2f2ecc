/* Opens the plug-in beside this file (the argument names it), lets a thread work in it, closes it, and only then lets the thread end: nothing of the
 * plug-in may run at the end of the thread, because its code is gone. Twice, because a plug-in may be opened again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(holds)                                                   \
    do {                                                                 \
        if (!(holds)) {                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #holds); \
            exit(1);                                                     \
        }                                                                \
    } while (0)

static pthread_barrier_t turn;
static int (*work)(void);

static void *use(void *unused) {
    REQUIRE(work() == 1);
    pthread_barrier_wait(&turn);
    /* The plug-in is closed in between. */
    pthread_barrier_wait(&turn);
    return unused;
}

int main(int argc, char **argv) {
    int round;
    REQUIRE(argc == 2);
    REQUIRE(pthread_barrier_init(&turn, NULL, 2) == 0);
    for (round = 0; round < 2; round++) {
        pthread_t thread;
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *symbol;
        if (!plugin) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        symbol = dlsym(plugin, "plugin_work");
        REQUIRE(symbol);
        memcpy(&work, &symbol, sizeof symbol);
        REQUIRE(pthread_create(&thread, NULL, use, NULL) == 0);
        pthread_barrier_wait(&turn);
        REQUIRE(dlclose(plugin) == 0);
        /* Else this test would be about nothing. */
        REQUIRE(!dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD));
        pthread_barrier_wait(&turn);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    puts("plug-in: as it should be");
    return 0;
}
