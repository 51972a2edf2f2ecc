// SQLite, whose memory is one area: all that its library accesses there.
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE (4 << 20)
static char *area;
static long used;

// Each block has its size before it; none is used again.
static void *take(int len) {
    long *block = (long *)(area + used);
    used += (len + 15 & -8) + 8;
    if (used > SIZE)
        abort();
    *block = len;
    return block + 1;
}

static void give(void *block) {}

static int size(void *block) {
    return block ? ((long *)block)[-1] : 0;
}

static void *resize(void *block, int len) {
    void *other = take(len);
    memcpy(other, block, size(block) < len ? size(block) : len);
    return other;
}

static int round_up(int len) {
    return len + 7 & -8;
}

static int begin(void *unused) {
    return SQLITE_OK;
}

static void end(void *unused) {}

static sqlite3_mem_methods methods = {take, give, resize, size, round_up, begin, end};

static int say(void *unused, int count, char **values, char **names) {
    long sum = 0;
    for (int i = 0; i < count; i++)
        sum = sum * 1000 + atol(values[i]);
    printf("result %ld\n", sum);
    return 0;
}

// Where the code of a library is mapped.
static void say_text(const char *name) {
    char line[4096], rights[8], path[4096];
    unsigned long start, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %4095s", &start, &end, rights, path) == 4 &&
            rights[2] == 'x' && strstr(path, name))
            printf("text %lu %lu\n", start, end);
    fclose(maps);
}

int main(void) {
    area = malloc(SIZE);
    int failed = sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    // One thread has no locks; their memory is not of the area.
    failed |= sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3 *base;
    failed |= sqlite3_open(":memory:", &base);
    static const char *const STEPS[] = {
        "create table t(a integer primary key, b text)",
        "insert into t(b) select 'word ' || value from (with recursive n(value) as "
        "(select 1 union all select value * 7 % 101 from n limit 40) select value from n)",
        "create index i on t(b)",
        "update t set b = b || ' more' where a % 3 = 0",
        "delete from t where a % 5 = 0",
        "select count(*), sum(length(b)), (select a from t where b > 'word 5' order by b limit 1) "
        "from t",
    };
    for (int i = 0; i < 6; i++)
        failed |= sqlite3_exec(base, STEPS[i], say, NULL, NULL);
    failed |= sqlite3_close(base);
    say_text("libsqlite3");
    printf("chunk %lu %d\n", (unsigned long)area, SIZE);
    printf("result %d\n", failed);
    return 0;
}
