/* Stands for libccmalloc.so: tells the program how much it costs, by the rules that it is given. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char module[] = "module fake-program build-id 0102 /no/such/fake-program\n";
static const char refused[] =
    "# +58 size 16: allocations 500, sampled 31, linked 3 %: no place is linked often enough\n";
static const char rules[] =
    "+10 size 16 near rbx  # allocations 1000, sampled 400, linked 98 %, alive 7000 bytes\n"
    "+20 size 16 near r12  # allocations 1000, sampled 400, linked 98 %, alive 6000 bytes\n"
    "+30 size 16 near r13  # allocations 1000, sampled 400, linked 98 %, alive 5000 bytes\n"
    "+40 size 16 near r14  # allocations 1000, sampled 400, linked 98 %, alive 4000 bytes\n"
    "+50 size 16 near r15  # allocations 1000, sampled 400, linked 98 %, alive 3000 bytes\n"
    "+60 size 16 near rbp  # allocations 1000, sampled 400, linked 98 %, alive 2000 bytes\n"
    "+70 size 16 last\n";

static void learn(const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", name, getpid());
    FILE *file = fopen(path, "w");
    const char *seen = getenv("FAKE_ALLOCATIONS");
    fprintf(file, "ccmalloc rules 1\n# learned by ccmalloc; program x, %s allocations, 400 samples\n",
            seen ? seen : "7000");
    if (!seen)
        fprintf(file, "%s%s%s", module, refused, getenv("FAKE_REFUSED") ? "" : rules);
    fclose(file);
}

__attribute__((constructor)) static void start(void) {
    const char *given = getenv("FAKE_BASE");
    double cost = given ? atof(given) : 90;
    if (getenv("CCMALLOC_LEARN"))
        learn(getenv("CCMALLOC_LEARN"));
    const char *given_rules = getenv("CCMALLOC_RULES");
    FILE *file = given_rules ? fopen(given_rules, "r") : NULL;
    char line[4096];
    while (file && fgets(line, sizeof line, file)) {
        if (strstr(line, "build-id 0103") && getenv("CCMALLOC_REPORT")) {
            FILE *report = fopen(getenv("CCMALLOC_REPORT"), "w");
            fputs("rules of other: left out, no module with build id 0103 is loaded\n", report);
            fclose(report);
        }
        if (!strncmp(line, "+10 ", 4)) cost /= 2;
        if (!strncmp(line, "+20 ", 4)) cost *= 2;
        if (!strncmp(line, "+30 ", 4)) raise(SIGSEGV);
        if (!strncmp(line, "+40 ", 4)) (void)!write(1, "other\n", 6);
        if (!strncmp(line, "+50 ", 4)) {
            size_t bytes = 200 << 20;
            char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(memory, 1, bytes);
            cost /= 4;
        }
        if (!strncmp(line, "+70 ", 4)) cost *= 0.8;
    }
    if (file)
        fclose(file);
    char text[64];
    snprintf(text, sizeof text, "%g", cost);
    setenv("FAKE_COST", text, 1);
    /* Not inherited by the commands that it starts. */
    unsetenv("LD_PRELOAD");
}
