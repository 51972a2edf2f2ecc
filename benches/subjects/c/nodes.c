/* Programs that allocate a node at a time, after those of the suites Olden and Ptrdist: what is built and how it is used, written anew.
 *
 *   nodes NAME [SCALE]     prints a figure, which says that two runs did the same
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long seed = 88172645463325252UL;

static unsigned long next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static void *node(size_t bytes)
{
    void *made = malloc(bytes);
    if (made == NULL)
        exit(3);
    return made;
}

/* treeadd: a binary tree in depth-first order, summed again and again. */
struct tree {
    long value;
    struct tree *left, *right;
};

static struct tree *tree_of(int levels)
{
    struct tree *made = node(sizeof *made);
    made->value = 1;
    made->left = levels > 1 ? tree_of(levels - 1) : NULL;
    made->right = levels > 1 ? tree_of(levels - 1) : NULL;
    return made;
}

static long tree_sum(struct tree *tree)
{
    return tree == NULL ? 0 : tree->value++ + tree_sum(tree->left) + tree_sum(tree->right);
}

static unsigned long treeadd(long scale)
{
    struct tree *tree = tree_of(20);
    unsigned long sum = 0;
    for (long round = 0; round < 60 * scale; round++)
        sum += tree_sum(tree);
    return sum;
}

/* bst: keys in random order into a search tree, then looked up. */
static unsigned long bst(long scale)
{
    const long count = 400000;
    struct tree *root = NULL;
    unsigned long found = 0;
    for (long turn = 0; turn < count; turn++) {
        long key = (long)(next_random() >> 44);
        struct tree **place = &root;
        while (*place != NULL && (*place)->value != key)
            place = key < (*place)->value ? &(*place)->left : &(*place)->right;
        if (*place == NULL) {
            struct tree *made = node(sizeof *made);
            made->value = key;
            made->left = made->right = NULL;
            *place = made;
        }
    }
    for (long turn = 0; turn < 3 * count * scale; turn++) {
        long key = (long)(next_random() >> 44);
        const struct tree *at = root;
        while (at != NULL && at->value != key)
            at = key < at->value ? at->left : at->right;
        found += at != NULL;
    }
    return found;
}

/* health: villages with lists of patients, which are assessed, treated, or sent to the village above. */
struct patient {
    int time, hospitals;
    struct patient *next;
};

struct village {
    struct village *below[4], *above;
    struct patient *waiting;
    long treated;
};

static struct village *village_of(int levels, struct village *above)
{
    struct village *made = node(sizeof *made);
    made->above = above;
    made->waiting = NULL;
    made->treated = 0;
    for (int at = 0; at < 4; at++)
        made->below[at] = levels > 1 ? village_of(levels - 1, made) : NULL;
    return made;
}

static void village_step(struct village *village)
{
    for (int at = 0; at < 4; at++)
        if (village->below[at] != NULL)
            village_step(village->below[at]);
    struct patient **place = &village->waiting;
    while (*place != NULL) {
        struct patient *patient = *place;
        if (++patient->time % 8 != 0) {
            place = &patient->next;
        } else if (village->above == NULL || next_random() % 4 != 0) {
            if (patient->time < 64) {
                place = &patient->next;
                continue;
            }
            *place = patient->next;
            village->treated++;
            free(patient);
        } else {
            *place = patient->next;
            patient->hospitals++;
            patient->next = village->above->waiting;
            village->above->waiting = patient;
        }
    }
    if (next_random() % 2 == 0) {
        struct patient *made = node(sizeof *made);
        made->time = made->hospitals = 0;
        made->next = NULL;
        *place = made;
    }
}

static long village_treated(const struct village *village)
{
    long sum = village->treated;
    for (int at = 0; at < 4; at++)
        if (village->below[at] != NULL)
            sum += village_treated(village->below[at]);
    return sum;
}

static unsigned long health(long scale)
{
    struct village *top = village_of(8, NULL);
    for (long step = 0; step < 120 * scale; step++)
        village_step(top);
    return (unsigned long)village_treated(top);
}

/* mst: vertices whose edges lie in hash tables with chains; a spanning tree by repeated lookups. */
struct entry {
    unsigned key, value;
    struct entry *next;
};

struct vertex {
    unsigned nearest;
    int in_tree;
    struct entry *buckets[64];
};

static unsigned long mst(long scale)
{
    const unsigned count = 1024, degree = 512;
    struct vertex *vertices = calloc(count, sizeof *vertices);
    unsigned long sum = 0;
    if (vertices == NULL)
        exit(3);
    for (unsigned edge = 0; edge < count * degree; edge++) {
        unsigned from = next_random() % count, to = next_random() % count;
        struct entry **place = &vertices[from].buckets[to % 64];
        while (*place != NULL)
            place = &(*place)->next;
        *place = node(sizeof **place);
        **place = (struct entry){to, (unsigned)(next_random() % 1000), NULL};
    }
    for (long round = 0; round < 3 * scale; round++) {
        for (unsigned at = 0; at < count; at++)
            vertices[at].nearest = 1u << 30, vertices[at].in_tree = 0;
        for (unsigned added = 0, step = 0; step < count; step++) {
            unsigned best = count;
            vertices[added].in_tree = 1;
            for (unsigned at = 0; at < count; at++) {
                struct vertex *vertex = &vertices[at];
                if (vertex->in_tree)
                    continue;
                const struct entry *entry = vertex->buckets[added % 64];
                for (; entry != NULL; entry = entry->next)
                    if (entry->key == added && entry->value < vertex->nearest)
                        vertex->nearest = entry->value;
                if (best == count || vertex->nearest < vertices[best].nearest)
                    best = at;
            }
            if (best == count)
                break;
            sum += vertices[best].nearest;
            added = best;
        }
    }
    return sum;
}

/* ft: a heap of linked trees over vertices with lists of edges. Here: shortest paths by a pairing heap. */
struct edge {
    unsigned to, length;
    struct edge *next;
};

struct item {
    unsigned long key;
    unsigned vertex;
    struct item *child, *sibling;
};

static struct item *merged(struct item *a, struct item *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    if (b->key < a->key) {
        struct item *swap = a;
        a = b;
        b = swap;
    }
    b->sibling = a->child;
    a->child = b;
    return a;
}

static struct item *merged_pairs(struct item *first)
{
    struct item *pairs = NULL, *result = NULL;
    while (first != NULL) {
        struct item *second = first->sibling, *rest = second == NULL ? NULL : second->sibling;
        first->sibling = NULL;
        if (second != NULL)
            second->sibling = NULL;
        struct item *pair = merged(first, second);
        pair->sibling = pairs;
        pairs = pair;
        first = rest;
    }
    while (pairs != NULL) {
        struct item *rest = pairs->sibling;
        pairs->sibling = NULL;
        result = merged(result, pairs);
        pairs = rest;
    }
    return result;
}

static unsigned long ft(long scale)
{
    const unsigned count = 100000;
    struct edge **edges = calloc(count, sizeof *edges);
    unsigned long *distance = malloc(count * sizeof *distance), sum = 0;
    if (edges == NULL || distance == NULL)
        exit(3);
    for (unsigned made = 0; made < 16 * count; made++) {
        struct edge **first = &edges[next_random() % count], *edge = node(sizeof *edge);
        *edge = (struct edge){(unsigned)(next_random() % count), 1 + (unsigned)(next_random() % 99), *first};
        *first = edge;
    }
    for (long round = 0; round < 2 * scale; round++) {
        struct item *heap = NULL;
        memset(distance, 0xff, count * sizeof *distance);
        struct item *start = node(sizeof *start);
        *start = (struct item){0, (unsigned)round, NULL, NULL};
        for (heap = start; heap != NULL;) {
            struct item *least = heap;
            heap = merged_pairs(least->child);
            if (least->key < distance[least->vertex]) {
                distance[least->vertex] = least->key;
                sum += least->key;
                for (const struct edge *edge = edges[least->vertex]; edge != NULL; edge = edge->next)
                    if (least->key + edge->length < distance[edge->to]) {
                        struct item *item = node(sizeof *item);
                        *item = (struct item){least->key + edge->length, edge->to, NULL, NULL};
                        heap = merged(heap, item);
                    }
            }
            free(least);
        }
    }
    return sum;
}

/* anagram: words in a trie, by letter, each level a list of siblings. */
struct letter {
    char letter;
    unsigned words;
    struct letter *next, *below;
};

static unsigned long anagram(long scale)
{
    struct letter *root = NULL;
    unsigned long sum = 0;
    for (long turn = 0; turn < 300000 + 500000 * scale; turn++) {
        unsigned long word = next_random();
        struct letter **level = &root;
        for (int at = 0; at < 6; at++, word >>= 5) {
            char letter = (char)('a' + (word % 32 * (word % 7)) % 26);
            struct letter **place = level;
            while (*place != NULL && (*place)->letter != letter)
                place = &(*place)->next;
            if (*place == NULL) {
                if (turn >= 300000)
                    break;
                *place = node(sizeof **place);
                **place = (struct letter){letter, 0, NULL, NULL};
            }
            sum += ++(*place)->words;
            level = &(*place)->below;
        }
    }
    return sum;
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        unsigned long (*run)(long);
    } programs[] = {{"treeadd", treeadd}, {"bst", bst}, {"health", health},
                    {"mst", mst},         {"ft", ft},   {"anagram", anagram}};
    long scale = count > 2 ? atol(words[2]) : 1;
    for (size_t at = 0; count > 1 && at < sizeof programs / sizeof *programs; at++)
        if (strcmp(words[1], programs[at].name) == 0) {
            printf("%s %lu\n", words[1], programs[at].run(scale));
            return 0;
        }
    fputs("usage: nodes treeadd|bst|health|mst|ft|anagram [SCALE]\n", stderr);
    return 2;
}
