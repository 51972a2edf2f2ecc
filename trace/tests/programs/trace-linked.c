// A library whose data is relocated while another thread makes system calls.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef LIBRARY
static int value;
#define EIGHT &value, &value, &value, &value, &value, &value, &value, &value
#define HUNDREDS EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT
#define MANY HUNDREDS, HUNDREDS, HUNDREDS, HUNDREDS, HUNDREDS, HUNDREDS, HUNDREDS, HUNDREDS
int *pointers[] = {MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY};

int wrong(void) {
    int count = 0;
    for (unsigned at = 0; at < sizeof pointers / sizeof *pointers; at++)
        count += pointers[at] != &value;
    return count;
}
#else
static volatile int stop;

static void *call(void *unused) {
    while (!stop)
        syscall(SYS_getppid);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, call, NULL);
    int wrong = 0;
    for (int turn = 0; turn < 10; turn++) {
        void *library = dlopen("./library.so", RTLD_NOW);
        int (*count)(void) = (int (*)(void))dlsym(library, "wrong");
        wrong += count();
        dlclose(library);
    }
    stop = 1;
    pthread_join(thread, NULL);
    printf("wrong %d\n", wrong);
    return 0;
}
#endif
