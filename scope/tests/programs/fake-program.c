/* Writes what it costs, as fake-allocator.c says, to the file `cost`; echoes its input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "";
    FILE *file = fopen("cost", "w");
    const char *cost = getenv("FAKE_COST");
    fprintf(file, "%s\n", cost ? cost : "100");
    fclose(file);
    long runs = 0;
    if ((file = fopen("runs", "a"))) {
        fputs("run\n", file);
        runs = ftell(file) / 4;
        fclose(file);
    }
    if (!strcmp(mode, "hang") && runs > 10)
        sleep(100);
    if (!strcmp(mode, "clock")) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        printf("%ld.%09ld\n", (long)now.tv_sec, now.tv_nsec);
    }
    if (!strcmp(mode, "wait"))
        usleep(1000 * (cost ? atoi(cost) : 100));
    if (!strcmp(mode, "serve")) {
        fclose(fopen("ready", "w"));
        for (;;)
            pause();
    }
    for (int letter; (letter = getchar()) != EOF;)
        putchar(letter);
    printf("%d words\n", count);
    return !strcmp(mode, "fail") ? 7 : 0;
}
