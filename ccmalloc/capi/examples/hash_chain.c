/* A hash table with chains, whose elements are allocated near the element before them in their chain.
 *
 *     cc hash_chain.c $(pkg-config --cflags --libs libccmalloc) -o hash_chain
 *
 * Fills a table, removes and adds elements at random, checks every answer, and says how many elements share a cache block with their neighbour.
 * The argument `null` gives the hint NULL everywhere: the same program without placement. */
#include <ccmalloc.h>
#include <stdio.h>
#include <string.h>

#define BUCKETS 16384u
#define ELEMENTS 65536u

struct element {
    uint64_t key;
    uint64_t value;
    struct element *next;
};

static struct element *buckets[BUCKETS];
static unsigned char present[2 * ELEMENTS];
static int use_hints = 1;

static uint64_t next_random(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 32;
}

static struct element **link_of(uint64_t key, struct element **before) {
    struct element **link = &buckets[key * 0x9e3779b97f4a7c15u >> 50];
    *before = NULL;
    while (*link && (*link)->key != key) {
        *before = *link;
        link = &(*link)->next;
    }
    return link;
}

/* 0 when out of memory. */
static int add(uint64_t key) {
    struct element *tail;
    struct element **link = link_of(key, &tail);
    if (!*link) {
        /* The first of a chain has no neighbour; the address of its bucket starts a block with room for the next. */
        const void *hint = tail ? (const void *)tail : (const void *)link;
        struct element *element = ccmalloc(sizeof *element, use_hints ? hint : NULL);
        if (!element) return 0;
        element->key = key;
        element->value = key * key;
        element->next = NULL;
        *link = element;
    }
    return 1;
}

static void take_out(uint64_t key) {
    struct element *before;
    struct element **link = link_of(key, &before);
    if (*link) {
        struct element *element = *link;
        *link = element->next;
        ccfree(element);
    }
}

int main(int argc, char **argv) {
    struct ccmalloc_placement report;
    uint64_t elements = 0, pairs = 0, same_block = 0, hinted;
    unsigned step, key;
    use_hints = !(argc > 1 && strcmp(argv[1], "null") == 0);
    for (step = 0; step < 4 * ELEMENTS; step++) {
        key = (unsigned)(next_random() % (2 * ELEMENTS));
        if (next_random() % 4 == 0) {
            take_out(key);
            present[key] = 0;
        } else {
            if (!add(key)) return 1;
            present[key] = 1;
        }
    }
    for (key = 0; key < 2 * ELEMENTS; key++) {
        struct element *before;
        struct element *found = *link_of(key, &before);
        if ((found != NULL) != present[key] || (found && found->value != (uint64_t)key * key)) {
            fprintf(stderr, "wrong answer for %u\n", key);
            return 1;
        }
        elements += found != NULL;
        pairs += found && before;
        same_block += found && before && (uintptr_t)found / 64 == (uintptr_t)before / 64;
    }
    ccmalloc_get_placement(&report, sizeof report);
    hinted = report.same_block + report.same_group + report.same_page + report.tied_page + report.elsewhere + report.not_usable;
    printf("%lu elements, %lu neighbours in chains, %lu%% of them in one cache block\n", (unsigned long)elements, (unsigned long)pairs,
           (unsigned long)(100 * same_block / pairs));
    printf("%lu hinted allocations, %lu of them in the hint's block\n", (unsigned long)hinted, (unsigned long)report.same_block);
    if (use_hints ? 3 * same_block < pairs || report.same_block == 0 : hinted != 0) {
        fprintf(stderr, "the hints had no effect, or there should have been none\n");
        return 1;
    }
    for (key = 0; key < 2 * ELEMENTS; key++) take_out(key);
    for (key = 0; key < BUCKETS; key++) {
        if (buckets[key]) {
            fprintf(stderr, "elements are left\n");
            return 1;
        }
    }
    return 0;
}
