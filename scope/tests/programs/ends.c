// Allocates, and ends or goes on in the way that its first argument names.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// One function for the blocks that tests look for, by size.
__attribute__((noinline)) static void *keep(size_t size) {
    char *block = malloc(size);
    *(volatile char *)block = 1;
    return block;
}

static void *short_thread(void *unused) {
    free(keep(333));
    return unused;
}

static volatile int64_t *shared_blocks[2];

// Each thread reads its half of one block and writes that of the other. gcc would take a read and a
// write of one word for one access.
static void *counting_thread(void *half) {
    int64_t sum = 0;
    free(keep(10000));
    keep(5000);
    for (int round = 0; round < 1000; round++)
        for (int word = 0; word < 8; word++) {
            sum += shared_blocks[0][(intptr_t)half * 8 + word];
            shared_blocks[1][(intptr_t)half * 8 + word] = sum;
        }
    return NULL;
}

static atomic_int timers_begun, timers_done;

static void of_timer(union sigval unused) {
    if (atomic_fetch_add(&timers_begun, 1) >= 20)
        return;
    for (int round = 0; round < 1000; round++)
        free(keep(444));
    atomic_fetch_add(&timers_done, 1);
}

static atomic_int linker_is_busy, children_are_done;

// Keeps the dynamic linker's lock for a while.
static int hold_linker(struct dl_phdr_info *info, size_t size, void *unused) {
    for (linker_is_busy = 1; !children_are_done;)
        usleep(1000);
    return 1;
}

static void *holding_thread(void *unused) {
    dl_iterate_phdr(hold_linker, unused);
    return NULL;
}

static size_t deep(int depth) {
    volatile char *block = keep(777);
    size_t sum = depth > 0 ? deep(depth - 1) : 0;
    return sum + block[0];
}

__attribute__((constructor)) static void before_main(void) {
    keep(111);
}

__attribute__((destructor)) static void after_handlers(void) {
    keep(998);
}

static void at_exit(void) {
    keep(999);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "return";
    keep(12345);
    if (!strcmp(how, "fork")) {
        pid_t child = fork();
        if (child == 0) {
            keep(222);
            exit(3);
        }
        int status;
        waitpid(child, &status, 0);
        keep(444);
        printf("child ended with %d\n", WEXITSTATUS(status));
    } else if (!strcmp(how, "fork-linking")) {
        // Children that are the first to allocate from a library, while a thread is in the linker.
        void *library = dlopen(argv[2], RTLD_NOW);
        void *(*make)(void) = (void *(*)(void))dlsym(library, "make");
        pthread_t thread;
        pthread_create(&thread, NULL, holding_thread, NULL);
        while (!linker_is_busy)
            usleep(1000);
        for (int i = 0; i < 3; i++) {
            pid_t child = fork();
            if (child == 0) {
                alarm(60);
                make();
                keep(222);
                _exit(7);
            }
            int status;
            waitpid(child, &status, 0);
            printf("child ended with %d, by signal %d\n", WEXITSTATUS(status), WTERMSIG(status));
        }
        children_are_done = 1;
        pthread_join(thread, NULL);
    } else if (!strcmp(how, "exec")) {
        execl(argv[0], argv[0], "atexit", NULL);
    } else if (!strcmp(how, "atexit")) {
        atexit(at_exit);
    } else if (!strcmp(how, "_exit")) {
        _exit(4);
    } else if (!strcmp(how, "abort")) {
        abort();
    } else if (!strcmp(how, "segv")) {
        *(volatile int *)0 = 1;
    } else if (!strcmp(how, "kill")) {
        kill(getpid(), SIGKILL);
    } else if (!strcmp(how, "thousands")) {
        for (int round = 0; round < 2500; round++) {
            pthread_t threads[4];
            for (int i = 0; i < 4; i++)
                if (pthread_create(&threads[i], NULL, short_thread, NULL) != 0)
                    return 1;
            for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        }
    } else if (!strcmp(how, "counting")) {
        for (int block = 0; block < 2; block++)
            shared_blocks[block] = calloc(16, 8);
        pthread_t threads[2];
        for (intptr_t half = 0; half < 2; half++)
            pthread_create(&threads[half], NULL, counting_thread, (void *)half);
        for (int half = 0; half < 2; half++)
            pthread_join(threads[half], NULL);
    } else if (!strcmp(how, "timer")) {
        // libc starts its threads itself, while this one allocates.
        struct sigevent event = {.sigev_notify = SIGEV_THREAD};
        event.sigev_notify_function = of_timer;
        timer_t timer;
        struct itimerspec often = {{0, 1000000}, {0, 1000000}};
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
            timer_settime(timer, 0, &often, NULL) != 0)
            return 1;
        while (timers_done < 20)
            free(keep(555));
    } else if (!strcmp(how, "deep")) {
        printf("%zu\n", deep(10000));
    } else if (!strcmp(how, "dlopen")) {
        void *last = NULL;
        for (int i = 2; i < argc; i++) {
            void *library = dlopen(argv[i], RTLD_NOW);
            void *make = dlsym(library, "make");
            ((void *(*)(void))make)();
            dlclose(library);
            printf("there again: %d\n", make == last);
            last = make;
        }
        keep(555);
    } else if (!strcmp(how, "close")) {
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
        keep(666);
        return 5;
    }
    return 0;
}
