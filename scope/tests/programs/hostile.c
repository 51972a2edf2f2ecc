// Does what its first argument names, and says what came of it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
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

static void count_in_timer(union sigval unused) {
    (void)unused;
    count(NULL);
    handled = 1;
}

static sigjmp_buf before;

static void jump(int signal) {
    (void)signal;
    siglongjmp(before, 1);
}

static volatile int64_t words[16];

static void count_elsewhere(void *unused) {
    (void)unused;
    for (int i = 0; i < 50000; i++)
        words[i % 16] = i;
}

static pthread_key_t key;

static void *use_key(void *unused) {
    pthread_setspecific(key, &key);
    return unused;
}

static void *allocate(void *unused) {
    for (;;)
        free(malloc(40));
    return unused;
}

static int ends[2];
// Of a library whose `write` returns once the block that was handed on is freed.
extern volatile int taken __attribute__((weak));

// Frees the blocks that it gets, and puts others in their place.
static void *take_over(void *count) {
    for (intptr_t i = 0; i < (intptr_t)count; i++) {
        void *block, *other;
        while (read(ends[0], &block, 8) != 8)
            ;
        free(block);
        other = malloc(196);
        if (&taken)
            taken = 1;
        free(other);
    }
    return NULL;
}

static void hand_on(intptr_t count) {
    pthread_t thread;
    pipe2(ends, O_NONBLOCK);
    pthread_create(&thread, NULL, take_over, (void *)count);
    for (intptr_t i = 0; i < count; i++) {
        int64_t *block = malloc(200);
        block[0] = (int64_t)block;
        while (write(ends[1], block, 8) != 8)
            ;
    }
    pthread_join(thread, NULL);
}

// Moves less than was asked for, nothing, and less than the kernel says.
static void move_some(void) {
    pipe2(ends, O_NONBLOCK);
    char *block = malloc(100000), *small = malloc(48);
    if (write(ends[1], block, 100000) != 65536)
        abort();
    for (int i = 0; i < 5; i++)
        if (write(ends[1], block, 100000) != -1 || read(-1, small, 48) != -1)
            abort();
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    if (send(ends[1], block, 100, 0) != 100 || recv(ends[0], small, 40, MSG_TRUNC) != 100)
        abort();
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
    } else if (!strcmp(how, "timer")) {
        shared_block = malloc(128);
        struct sigevent event = {.sigev_notify = SIGEV_THREAD};
        event.sigev_notify_function = count_in_timer;
        struct itimerspec soon = {{0, 0}, {0, 100000}};
        timer_t timer;
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &soon, NULL))
            return 1;
        for (int i = 0; i < 19; i++)
            count(NULL);
        while (!handled)
            usleep(1000);
    } else if (!strcmp(how, "longjmp")) {
        shared_block = malloc(128);
        signal(SIGALRM, jump);
        for (volatile int round = 0; round < 40; round++)
            if (sigsetjmp(before, 1) == 0) {
                struct itimerval soon = {{0, 0}, {0, 100}};
                setitimer(ITIMER_REAL, &soon, NULL);
                for (;;)
                    count(NULL);
            }
        for (int i = 0; i < 10; i++)
            count(NULL);
    } else if (!strcmp(how, "keys")) {
        pthread_key_create(&key, count_elsewhere);
        pthread_t thread;
        pthread_create(&thread, NULL, use_key, NULL);
        pthread_join(thread, NULL);
        count_elsewhere(NULL);
    } else if (!strcmp(how, "_Fork")) {
        shared_block = malloc(128);
        pid_t child = _Fork();
        for (int i = 0; i < 100; i++)
            shared_block[0] = i;
        int status;
        if (child != 0)
            waitpid(child, &status, 0);
    } else if (!strcmp(how, "hands")) {
        hand_on(atoi(argv[2]));
    } else if (!strcmp(how, "moves")) {
        move_some();
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
