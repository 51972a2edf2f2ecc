// Memory with names, and a mistake.
#include <stdlib.h>
#include <string.h>

struct point {
    long x, y, z;
};
typedef struct {
    int width;
    struct point origin, rows[];
} grid;
int limits[3] = {1, 2, 3};
struct point corners[2][2];
extern grid first;
grid first = {7, {1, 2, 3}, {{4, 5, 6}, {7, 8, 9}}};

struct point *make(void) {
    struct point *point = malloc(sizeof(struct point));
    point->x = 1;
    point->y = 2;
    point->z = 3;
    return point;
}

int sum(void) {
    int all = 0;
    for (int i = 0; i < 3; i++)
        all += limits[i];
    return all;
}

__attribute__((noipa)) long globals(int at) {
    static union {
        int whole;
        char byte;
    } local;
    corners[at][1].y = 5;
    local.whole += first.width;
    return first.origin.z + first.rows[at].x;
}

int main(void) {
    struct point *point = make(), copy;
    int *zeros = calloc(100, sizeof(int));
    volatile size_t len = sizeof copy;
    memcpy(&copy, point, len);
    int all = (int)globals(1) + sum() + zeros[3] + (int)copy.x;
    free(point);
    // After the end of its life.
    all += (int)point->z;
    return all > 100;
}
