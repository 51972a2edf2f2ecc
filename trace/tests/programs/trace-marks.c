// Says itself what is traced: the second of three loops.
__attribute__((weak)) void ccscope_trace_start(void), ccscope_trace_stop(void);

static volatile int numbers[100];

static void fill(int value) {
    for (int i = 0; i < 100; i++)
        numbers[i] = value;
}

int main(void) {
    fill(1);
    if (ccscope_trace_start)
        ccscope_trace_start();
    fill(2);
    if (ccscope_trace_stop)
        ccscope_trace_stop();
    fill(3);
    return numbers[99] - 3;
}
