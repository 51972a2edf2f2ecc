/* ccmorph from C: structures of several kinds, and all that it must refuse. */
#include <ccmalloc.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int line;

#define CHECK(condition)                                                                                                                              \
    do {                                                                                                                                              \
        line = __LINE__;                                                                                                                              \
        if (!(condition)) {                                                                                                                           \
            fprintf(stderr, "ccmorph.c:%d: %s\n", line, #condition);                                                                                  \
            exit(1);                                                                                                                                  \
        }                                                                                                                                             \
    } while (0)

/* A doubly linked list that holds its next pointer twice, with as much beside it as `extra` says. */
struct item {
    size_t value;
    struct item *next, *previous, *again;
    char extra[];
};

static void *next_item(void *node, int i)
{
    struct item *item = node;
    return i == 1 ? item->next : i == -1 ? item->previous : NULL;
}

static struct item *list_of(size_t items, size_t extra, int hinted)
{
    struct item *first = NULL, *last = NULL;
    size_t value;
    for (value = 0; value < items; value++) {
        struct item *item = hinted ? ccmalloc(sizeof *item + extra, last ? (void *)last : (void *)&first) : malloc(sizeof *item + extra);
        CHECK(item != NULL);
        item->value = value;
        item->next = item->again = NULL;
        item->previous = last;
        memset(item->extra, (int)(value & 0xff), extra);
        if (last)
            last->next = last->again = item;
        else
            first = item;
        last = item;
    }
    return first;
}

/* Checks every field, and frees the list with functions that take no size, and by realloc. */
static void finish_list(struct item *first, size_t items, size_t extra)
{
    struct item *item, *previous = NULL;
    size_t value = 0, at;
    for (item = first; item; item = item->next) {
        CHECK(item->value == value && item->previous == previous && item->again == item->next);
        for (at = 0; at < extra; at++)
            CHECK((unsigned char)item->extra[at] == (value & 0xff));
        previous = item;
        value++;
    }
    CHECK(value == items);
    while (first) {
        struct item *next = first->next;
        if (first->value % 3 == 0)
            first = ccrealloc(first, sizeof *first + extra + 100, NULL);
        CHECK(first != NULL);
        ccfree(first);
        first = next;
    }
}

static void lists(void)
{
    static const size_t extras[] = {0, 1, 8, 24, 33, 500, 2000, 4096 - sizeof(struct item)};
    size_t at;
    int hinted, round;
    for (at = 0; at < sizeof extras / sizeof *extras; at++) {
        for (hinted = 0; hinted < 2; hinted++) {
            struct item *first = list_of(3000, extras[at], hinted);
            for (round = 0; round < 3; round++) {
                struct item *head = first;
                CHECK(ccmorph(first, next_item, 3000, 1, 0, round == 1 ? 64 : 0, 0, 0.0) == 0);
                CHECK(first == head && first->value == 0);
            }
            /* Half of a first-level cache, and of a second-level one whose ways are larger than a segment of memory. */
            if (extras[at] <= 500) {
                CHECK(ccmorph(first, next_item, 3000, 1, 64, 64, 12, 0.5) == 0);
                CHECK(ccmorph(first, next_item, 3000, 1, 16384, 64, 1, 0.5) == 0);
            }
            CHECK(ccmorph(first, next_item, 3000, 1, 3, 64, 12, 0.5) == EINVAL);
            CHECK(ccmorph(first, next_item, 3000, 1, 0, 64, 0, 0.5) == EINVAL);
            finish_list(first, 3000, extras[at]);
        }
    }
    /* One node, which is the root, has nothing to move. */
    {
        struct item *first = list_of(1, 0, 0);
        CHECK(ccmorph(first, next_item, 1, 1, 0, 0, 0, 0.0) == 0);
        finish_list(first, 1, 0);
    }
    /* Nodes of more than 4096 bytes stay, all of them. */
    for (at = 4097; at <= 40000; at += at / 2) {
        struct item *first = list_of(10, at - sizeof *first, 0), *second = first->next;
        CHECK(ccmorph(first, next_item, 10, 1, 0, 0, 0, 0.0) == EINVAL);
        CHECK(first->next == second);
        finish_list(first, 10, at - sizeof *first);
    }
    /* Children that no node has take no memory. */
    {
        struct item *first = list_of(2, 0, 0);
        struct rusage before, after;
        CHECK(getrusage(RUSAGE_SELF, &before) == 0);
        CHECK(ccmorph(first, next_item, 2, 1 << 23, 0, 64, 0, 0.0) == 0);
        CHECK(getrusage(RUSAGE_SELF, &after) == 0);
        CHECK(after.ru_maxrss - before.ru_maxrss < 100 << 10);
        finish_list(first, 2, 0);
    }
    CHECK(ccmorph(NULL, next_item, 0, 1, 0, 0, 0, 0.0) == 0);
    CHECK(ccmorph(NULL, next_item, 1, 1, 0, 0, 0, 0.0) == EINVAL);
}

/* A tree that is a heap of numbers, for what must be refused. */
enum { KIDS = 3, NODES = 100 };

struct node {
    struct node *kids[KIDS], *parent;
    size_t key;
};

static struct node *nodes[NODES], *snapshot[NODES][KIDS + 1];
static struct node foreign;
static int mode;

static void *next_kid(void *node, int i)
{
    struct node *self = node;
    if (i == -1)
        return self->parent;
    /* What is computed rather than held in the node. */
    if (mode == 1 && self->key == 5 && i == 1)
        return nodes[NODES - 1];
    return self->kids[i - 1];
}

static void plant(void)
{
    size_t at;
    for (at = 0; at < NODES; at++) {
        nodes[at] = calloc(1, sizeof **nodes);
        CHECK(nodes[at] != NULL);
        nodes[at]->key = at;
        if (at > 0) {
            nodes[at]->parent = nodes[(at - 1) / KIDS];
            nodes[at]->parent->kids[(at - 1) % KIDS] = nodes[at];
        }
    }
}

static void remember(void)
{
    size_t at;
    for (at = 0; at < NODES; at++) {
        memcpy(snapshot[at], nodes[at]->kids, sizeof nodes[at]->kids);
        snapshot[at][KIDS] = nodes[at]->parent;
    }
}

static void check_unchanged(void)
{
    size_t at;
    for (at = 0; at < NODES; at++) {
        CHECK(memcmp(snapshot[at], nodes[at]->kids, sizeof nodes[at]->kids) == 0);
        CHECK(snapshot[at][KIDS] == nodes[at]->parent && nodes[at]->key == at);
    }
}

static int refused(size_t num_nodes, int max_kids, size_t block, double color)
{
    int error;
    remember();
    errno = 77;
    error = ccmorph(nodes[0], next_kid, num_nodes, max_kids, 64, block, 12, color);
    CHECK(errno == 77);
    check_unchanged();
    return error;
}

static void refusals(void)
{
    struct node **place;
    plant();
    CHECK(refused(NODES - 1, KIDS, 0, 0.0) == EINVAL);
    CHECK(refused(NODES + 1, KIDS, 0, 0.0) == EINVAL);
    CHECK(refused(NODES, -1, 0, 0.0) == EINVAL);
    CHECK(refused(NODES, KIDS, 48, 0.0) == EINVAL);
    CHECK(refused(NODES, KIDS, 4, 0.0) == EINVAL);
    CHECK(refused(NODES, KIDS, 131072, 0.0) == EINVAL);
    CHECK(refused(NODES, KIDS, 64, -0.5) == EINVAL);
    CHECK(refused(NODES, KIDS, 64, 1.0) == EINVAL);
    CHECK(refused(NODES, KIDS, 64, strtod("nan", NULL)) == EINVAL);
    CHECK(ccmorph(nodes[0], NULL, NODES, KIDS, 0, 0, 0, 0.0) == EINVAL);
    /* A cycle, a child of two parents, a node without an owner. */
    place = &nodes[NODES - 1]->kids[0];
    *place = nodes[0];
    CHECK(refused(0, KIDS, 0, 0.0) == EINVAL);
    *place = nodes[NODES - 1];
    CHECK(refused(0, KIDS, 0, 0.0) == EINVAL);
    *place = nodes[1];
    CHECK(refused(0, KIDS, 0, 0.0) == EINVAL);
    *place = &foreign;
    CHECK(refused(0, KIDS, 0, 0.0) == EINVAL);
    *place = NULL;
    mode = 1;
    /* Detached, and told as the child of another all the same. */
    nodes[(NODES - 2) / KIDS]->kids[(NODES - 2) % KIDS] = NULL;
    nodes[5]->kids[0] = NULL;
    CHECK(refused(0, KIDS, 0, 0.0) == EINVAL);
    mode = 0;
    /* What is left is a tree, and is morphed. */
    CHECK(ccmorph(nodes[0], next_kid, 0, KIDS, 0, 0, 0, 0.0) == 0);
}

/* A threaded tree: the predecessor in the order of the keys is a node's own left child, if that has no right one. */
struct threaded {
    struct threaded *left, *right, *predecessor;
    size_t key;
};

static void *next_threaded(void *node, int i)
{
    struct threaded *self = node;
    return i == -1 ? self->predecessor : i == 1 ? self->left : self->right;
}

static struct threaded *thread_tree(size_t begin, size_t end, struct threaded **last)
{
    size_t middle = begin + (end - begin) / 2;
    struct threaded *self;
    if (begin == end)
        return NULL;
    self = malloc(sizeof *self);
    CHECK(self != NULL);
    self->key = middle;
    self->left = thread_tree(begin, middle, last);
    self->predecessor = *last;
    *last = self;
    self->right = thread_tree(middle + 1, end, last);
    return self;
}

/* Checks keys and predecessors; how many of these are their successors' left children. */
static size_t check_threads(const struct threaded *self, const struct threaded **last, size_t *keys)
{
    size_t children;
    if (!self)
        return 0;
    children = check_threads(self->left, last, keys);
    CHECK(self->key == (*keys)++ && self->predecessor == *last);
    *last = self;
    return children + (self->predecessor && self->predecessor == self->left) + check_threads(self->right, last, keys);
}

static void fell_threaded(struct threaded *self)
{
    if (self) {
        fell_threaded(self->left);
        fell_threaded(self->right);
        free(self);
    }
}

static void threads(void)
{
    static const size_t sizes[] = {1, 2, 3, 10, 1023, 3000};
    size_t at;
    for (at = 0; at < sizeof sizes / sizeof *sizes; at++) {
        struct threaded *built = NULL, *root = thread_tree(0, sizes[at], &built);
        int round;
        for (round = 0; round < 3; round++) {
            const struct threaded *last = NULL;
            size_t keys = 0, children = check_threads(root, &last, &keys);
            CHECK(keys == sizes[at] && (children > 0) == (keys > 1));
            CHECK(ccmorph(root, next_threaded, keys, 2, 0, round == 1 ? 64 : 0, 0, 0.0) == 0);
        }
        fell_threaded(root);
    }
}

/* Parents that lie outside of the structure, and such as nodes hold at different places. */
struct kind {
    struct kind *kid, *here, *there;
    size_t is_there;
};

static struct kind outside;

static void *next_kind(void *node, int i)
{
    struct kind *self = node;
    if (i == 1)
        return self->kid;
    return self->is_there ? self->there : self->here;
}

/* The root's parent is no field of it. */
static void *next_below_outside(void *node, int i)
{
    struct kind *self = node;
    return i == 1 ? (void *)self->kid : self->here ? (void *)self->here : (void *)&outside;
}

static void free_kinds(struct kind *self)
{
    while (self) {
        struct kind *kid = self->kid;
        free(self);
        self = kid;
    }
}

static void parents(void)
{
    enum { KINDS = 100 };
    struct kind *kinds[KINDS], before[KINDS], *self, *last;
    size_t at, mixed;
    /* All alike, then one that is not: all but the root change their parent, or nothing changes. */
    for (mixed = 0; mixed < 2; mixed++) {
        for (at = 0; at < KINDS; at++) {
            kinds[at] = calloc(1, sizeof *kinds[at]);
            CHECK(kinds[at] != NULL);
            if (at > 0) {
                kinds[at]->is_there = mixed && at == KINDS / 2;
                *(kinds[at]->is_there ? &kinds[at]->there : &kinds[at]->here) = kinds[at - 1];
                kinds[at - 1]->kid = kinds[at];
            }
        }
        if (mixed) {
            for (at = 0; at < KINDS; at++)
                before[at] = *kinds[at];
            CHECK(ccmorph(kinds[0], next_kind, KINDS, 1, 0, 0, 0, 0.0) == EINVAL);
            for (at = 0; at < KINDS; at++)
                CHECK(memcmp(&before[at], kinds[at], sizeof before[at]) == 0);
        } else {
            CHECK(ccmorph(kinds[0], next_below_outside, KINDS, 1, 0, 0, 0, 0.0) == 0);
            CHECK(kinds[0]->here == NULL && outside.kid == NULL);
            for (self = kinds[0], last = NULL, at = 0; self; last = self, self = self->kid, at++)
                CHECK(self->here == last);
            CHECK(at == KINDS);
            /* A part of it, whose root does have a parent. */
            CHECK(ccmorph(kinds[0]->kid, next_kind, KINDS - 1, 1, 0, 64, 0, 0.0) == 0);
            for (self = kinds[0], last = NULL; self; last = self, self = self->kid)
                CHECK(self->here == last);
        }
        free_kinds(kinds[0]);
    }
}

/* A node of any size from that of a pointer on. */
struct bare {
    struct bare *next;
};

static void *next_bare(void *node, int i)
{
    return i == 1 ? ((struct bare *)node)->next : NULL;
}

/* How many nodes of a list lie at other addresses than multiples of `align`, its first aside. */
static size_t misaligned(const struct bare *first, size_t align)
{
    size_t count = 0;
    while ((first = first->next) != NULL)
        count += (uintptr_t)first % align != 0;
    return count;
}

/* Nodes of larger alignments than malloc's, with and without blocks and colours. */
static void alignments(void)
{
    static const size_t sizes[] = {8, 24, 32, 48, 64, 96, 100, 160, 192, 256, 320, 1000, 2048, 4096};
    static const size_t blocks[] = {0, 8, 64, 256, 4096};
    enum { ITEMS = 200 };
    size_t align, at, block, coloured = 0;
    for (align = 16; align <= 4096; align *= 2) {
        for (at = 0; at < sizeof sizes / sizeof *sizes; at++) {
            struct bare *first = NULL, *next;
            size_t item;
            for (item = 0; item < ITEMS; item++) {
                next = aligned_alloc(align, sizes[at]);
                CHECK(next != NULL);
                next->next = first;
                first = next;
            }
            for (block = 0; block < sizeof blocks / sizeof *blocks; block++) {
                CHECK(ccmorph(first, next_bare, ITEMS, 1, 0, blocks[block], 0, 0.0) == 0);
                CHECK(misaligned(first, align) == 0);
                /* A first-level cache, whose parts may be too small for a node, and one whose ways are larger than a segment of memory. */
                coloured += ccmorph(first, next_bare, ITEMS, 1, 64, 64, 12, 0.3) == 0;
                CHECK(misaligned(first, align) == 0);
                CHECK(ccmorph(first, next_bare, ITEMS, 1, 4096, 64, 1, 0.3) == 0);
                CHECK(misaligned(first, align) == 0);
            }
            for (; first; first = next) {
                next = first->next;
                free(first);
            }
        }
    }
    CHECK(coloured > 0);
    /* The root stays, and neither its alignment nor its room says anything of the others'. */
    {
        struct bare *first = ccmalloc(100, &first), *next;
        int round;
        CHECK(first != NULL);
        first->next = NULL;
        for (at = 0; at < 10; at++) {
            next = aligned_alloc(128, 100);
            CHECK(next != NULL);
            next->next = first->next;
            first->next = next;
        }
        for (round = 0; round < 5; round++) {
            CHECK(ccmorph(first, next_bare, 11, 1, 0, 0, 0, 0.0) == 0);
            CHECK(misaligned(first, 128) == 0);
        }
        for (; first; first = next) {
            next = first->next;
            free(first);
        }
    }
    /* One node of malloc's alignment is enough for all to need no more. */
    {
        struct bare *first = aligned_alloc(64, 64);
        CHECK(first != NULL);
        first->next = malloc(48);
        CHECK(first->next != NULL);
        first->next->next = NULL;
        CHECK(ccmorph(first, next_bare, 2, 1, 0, 0, 0, 0.0) == 0);
        CHECK((uintptr_t)first->next % 16 == 0);
        free(first->next);
        free(first);
    }
}

/* Address space that the process has, in bytes. */
static size_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Lists of what was met, for which there is no memory: an error, and nothing has changed. */
static void out_of_memory(void)
{
    enum { ITEMS = 300000 };
    struct item *first = list_of(ITEMS, 0, 0);
    size_t more;
    for (more = 0; more <= 8 << 20; more += 1 << 20) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            struct rlimit limit;
            struct item *item, *previous = NULL;
            size_t value = 0;
            limit.rlim_cur = limit.rlim_max = address_space() + more;
            CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
            CHECK(ccmorph(first, next_item, 0, 1, 0, 0, 0, 0.0) == ENOMEM);
            for (item = first; item; previous = item, item = item->next)
                CHECK(item->value == value++ && item->previous == previous && item->again == item->next);
            CHECK(value == ITEMS);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    finish_list(first, ITEMS, 0);
}

int main(void)
{
    lists();
    threads();
    parents();
    alignments();
    out_of_memory();
    refusals();
    puts("ccmorph: as it should be");
    return 0;
}
