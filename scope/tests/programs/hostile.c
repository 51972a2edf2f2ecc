// Does what its first argument names, and says what came of it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

static volatile int64_t *shared_block;

static int count(void *unused) {
    (void)unused;
    for (int i = 0; i < 1000000; i++)
        shared_block[0] = i;
    return 0;
}

static volatile int handled;

// So many accesses that a burst of windows ends in here.
static void handler(int signal) {
    (void)signal;
    for (int i = 0; i < 300000; i++)
        shared_block[i % 16] = i;
    handled++;
}

static void *allocate(void *unused) {
    for (;;)
        free(malloc(40));
    return unused;
}

// Whether a core file would hold what lies from 0x100000000000 on.
static void print_dumped(void) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    int ours = 0, dumped = 0;
    while (fgets(line, sizeof line, maps)) {
        uint64_t start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            ours = start >= 0x100000000000 && end <= 0x200000000000;
        dumped |= ours && !strncmp(line, "VmFlags", 7) && !strstr(line, " dd");
    }
    printf("dumped: %d\n", dumped);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "nothing";
    char *block = malloc(12345);
    block[0] = 1;
    if (!strcmp(how, "dump")) {
        print_dumped();
    } else if (!strcmp(how, "dlerror")) {
        void *library = dlopen("/nonexistent.so", RTLD_NOW);
        if (write(1, "failed: ", 8) != 8 || library)
            return 1;
        const char *why = dlerror();
        puts(why ? why : "(forgotten)");
    } else if (!strcmp(how, "dlopen")) {
        puts(dlopen(argv[2], RTLD_NOW) ? "loaded" : dlerror());
    } else if (!strcmp(how, "thrd")) {
        shared_block = malloc(128);
        thrd_t thread;
        thrd_create(&thread, count, NULL);
        count(NULL);
        thrd_join(thread, NULL);
    } else if (!strcmp(how, "signals")) {
        shared_block = malloc(128);
        signal(SIGALRM, handler);
        for (int round = 0; round < 20; round++) {
            struct itimerval soon = {{0, 0}, {0, 200 + round * 50}};
            setitimer(ITIMER_REAL, &soon, NULL);
            while (handled == round)
                for (int i = 0; i < 16; i++)
                    shared_block[i] = i;
        }
    } else if (!strcmp(how, "mlockall")) {
        printf("%d\n", mlockall(MCL_CURRENT | MCL_FUTURE));
    } else if (!strcmp(how, "forks")) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, allocate, NULL);
        for (int i = 0; i < 40; i++) {
            pid_t child = fork();
            if (child == 0)
                _exit(7);
            int status;
            waitpid(child, &status, 0);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
                return 1;
        }
        _exit(0);
    }
    return 0;
}
