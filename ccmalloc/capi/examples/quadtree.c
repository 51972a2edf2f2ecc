/* The quadtree of figure 4-1: an image of a disk as a tree of squares, laid out again by ccmorph.
 *
 *     cc -std=c99 -O2 quadtree.c $(pkg-config --cflags --libs libccmalloc) -o quadtree && ./quadtree [levels]
 *
 * The tree is built breadth-first while other objects are allocated and freed, as in a program that has run for a while: children lie far from their
 * parents. What is printed are counts of where they lie, which do not change from run to run, and the time of the same search before and after. The
 * search finds the squares that hold points at the edge of the disk, and for each the square beside it, by the way of the parents, as the perimeter
 * program of the Olden benchmarks does. */
#include <ccmalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum color { WHITE, BLACK, GREY };

typedef struct quad *Quadtree;
struct quad {
    enum color color;
    int level;
    Quadtree nw, ne, sw, se, parent;
};

/* As in the figure. */
static void *next_node(void *node, int i)
{
    Quadtree quad = node;
    /* Valid values for i are -1, 1 ... max_kids. */
    switch (i) {
    case -1:
        return quad->parent;
    case 1:
        return quad->nw;
    case 2:
        return quad->ne;
    case 3:
        return quad->sw;
    case 4:
        return quad->se;
    }
    return NULL;
}

static uint64_t state = 1;

static uint32_t next_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

static void check(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "quadtree: %s\n", what);
        exit(1);
    }
}

/* A square to be divided, with the corner (x, y) and a side of 2^level. */
struct square {
    Quadtree quad;
    int64_t x, y;
};

/* Whether the square lies within the disk (BLACK), outside (WHITE), or across its edge. */
static enum color color_of(int64_t x, int64_t y, int64_t side, int64_t radius)
{
    int64_t inside = 0, corner;
    for (corner = 0; corner < 4; corner++) {
        int64_t dx = x + (corner & 1) * side - radius, dy = y + (corner >> 1) * side - radius;
        inside += dx * dx + dy * dy <= radius * radius;
    }
    if (inside == 4)
        return BLACK;
    /* The disk fills the image: a square with no corner in it does not meet it, but for the first few, which are divided. */
    return inside == 0 && side < radius ? WHITE : GREY;
}

static Quadtree new_quad(Quadtree parent, int level)
{
    static void *others[64];
    void **other = &others[next_random() % 64];
    Quadtree quad;
    free(*other);
    *other = malloc(next_random() % 96 + 1);
    quad = calloc(1, sizeof *quad);
    check(quad != NULL && *other != NULL, "no memory");
    quad->parent = parent;
    quad->level = level;
    return quad;
}

/* Builds the tree level by level, and counts its nodes. */
static Quadtree build(int levels, size_t *num_nodes)
{
    size_t capacity = 1024, at, count = 1;
    struct square *queue = malloc(capacity * sizeof *queue);
    int64_t radius = (int64_t)1 << (levels - 1);
    check(queue != NULL, "no memory");
    queue[0].quad = new_quad(NULL, levels);
    queue[0].x = queue[0].y = 0;
    for (at = 0; at < count; at++) {
        struct square square = queue[at];
        int64_t side = (int64_t)1 << square.quad->level;
        int kid;
        square.quad->color = color_of(square.x, square.y, side, radius);
        if (square.quad->color != GREY || square.quad->level == 0)
            continue;
        for (kid = 0; kid < 4; kid++) {
            Quadtree child = new_quad(square.quad, square.quad->level - 1);
            Quadtree *kids[4];
            kids[0] = &square.quad->nw;
            kids[1] = &square.quad->ne;
            kids[2] = &square.quad->sw;
            kids[3] = &square.quad->se;
            *kids[kid] = child;
            if (count == capacity) {
                capacity *= 2;
                queue = realloc(queue, capacity * sizeof *queue);
                check(queue != NULL, "no memory");
            }
            queue[count].quad = child;
            queue[count].x = square.x + (kid & 1) * side / 2;
            queue[count].y = square.y + (kid >> 1) * side / 2;
            count++;
        }
    }
    *num_nodes = count;
    {
        Quadtree root = queue[0].quad;
        free(queue);
        return root;
    }
}

/* The leaf that holds a point. */
static Quadtree find(Quadtree quad, uint32_t x, uint32_t y)
{
    while (quad->nw != NULL) {
        int bit = quad->level - 1, east = x >> bit & 1, south = y >> bit & 1;
        quad = south ? (east ? quad->se : quad->sw) : (east ? quad->ne : quad->nw);
    }
    return quad;
}

/* The square of at least this size to the east, found by the way of the common ancestor; NULL at the edge of the image. */
static Quadtree east_of(Quadtree quad)
{
    Quadtree up = quad->parent, beside;
    if (up == NULL)
        return NULL;
    if (quad == up->nw)
        return up->ne;
    if (quad == up->sw)
        return up->se;
    beside = east_of(up);
    if (beside == NULL || beside->nw == NULL)
        return beside;
    return quad == up->ne ? beside->nw : beside->sw;
}

/* Where the disk ends in the line `y`, to the west: there the squares are smallest. */
static uint32_t edge_at(uint32_t y, int levels)
{
    int64_t radius = (int64_t)1 << (levels - 1), dy = y - radius, x = 0, step;
    for (step = radius; step > 0; step /= 2) {
        int64_t dx = radius - (x + step);
        if (dx * dx + dy * dy > radius * radius)
            x += step;
    }
    return (uint32_t)x;
}

/* Searches, and adds up what is found, so that two trees can be compared. */
static uint64_t search(Quadtree root, int levels, size_t searches, double *seconds)
{
    uint64_t sum = 0;
    size_t i;
    clock_t begin = clock();
    state = 7;
    for (i = 0; i < searches; i++) {
        uint32_t y = next_random() & (((uint32_t)1 << levels) - 1), x = edge_at(y, levels);
        Quadtree here = find(root, x, y), beside = east_of(here);
        sum = sum * 31 + (uint64_t)here->color * 8 + (uint64_t)here->level;
        if (beside != NULL)
            sum = sum * 31 + (uint64_t)beside->color * 8 + (uint64_t)beside->level;
    }
    *seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    return sum;
}

/* Counts children that share a block of this many bytes with their parent, and checks all parents. */
static size_t near(Quadtree quad, uintptr_t bytes)
{
    size_t count = 0;
    int i;
    for (i = 1; i <= 4; i++) {
        Quadtree child = next_node(quad, i);
        if (child == NULL)
            continue;
        check(child->parent == quad, "a child has another parent");
        count += ((uintptr_t)child ^ (uintptr_t)quad) < bytes;
        count += near(child, bytes);
    }
    return count;
}

static void drop(Quadtree quad)
{
    int i;
    for (i = 1; i <= 4; i++) {
        Quadtree child = next_node(quad, i);
        if (child != NULL)
            drop(child);
    }
    free(quad);
}

int main(int argc, char **argv)
{
    int levels = argc > 1 ? atoi(argv[1]) : 16, error;
    size_t num_nodes = 0, searches = 200000, blocks, pages;
    double before, after;
    uint64_t expected;
    Quadtree root;

    check(levels >= 2 && levels <= 20, "levels: 2 to 20");
    root = build(levels, &num_nodes);
    search(root, levels, searches, &before);
    expected = search(root, levels, searches, &before);
    blocks = near(root, 64);
    pages = near(root, 4096);
    printf("%lu nodes of %lu bytes\n", (unsigned long)num_nodes, (unsigned long)sizeof *root);
    printf("built:     children in their parent's block %5.1f%%, page %5.1f%%; %lu searches in %.3f s\n", 100.0 * (double)blocks / (double)num_nodes,
           100.0 * (double)pages / (double)num_nodes, (unsigned long)searches, before);

    error = ccmorph(root, next_node, num_nodes, 4, 0, 0, 0, 0.0);
    check(error == 0, strerror(error));

    search(root, levels, searches, &after);
    check(search(root, levels, searches, &after) == expected, "the morphed tree answers differently");
    check(near(root, 64) >= blocks && near(root, 4096) >= pages, "the morphed tree is no nearer");
    printf("reordered: children in their parent's block %5.1f%%, page %5.1f%%; %lu searches in %.3f s\n",
           100.0 * (double)near(root, 64) / (double)num_nodes, 100.0 * (double)near(root, 4096) / (double)num_nodes, (unsigned long)searches, after);
    drop(root);
    return 0;
}
