// The mechanism of MadT (Cesati, Mancuso, Betti, Caccamo; sections II.A and III.D), to be preloaded:
// memory is closed; the handler of the fault notes the access, opens the memory and sets the trap
// flag; the handler of the trap closes it again. The log goes to the file $MADT_LOG.
//
// It has less to do than MadT: only one chunk is closed, only the page that is accessed is opened,
// and no names are looked up. Opening all pages, as MadT does, takes as long for the few that the
// chunk has here, and longer for many.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { TRAP_FLAG = 0x100, WRITE = 2, PAGE = 4096, RECORDS = 1 << 14 };

static struct record {
    uint64_t instruction, address, is_store;
} records[RECORDS];
static int count, file;
static uintptr_t start, end, opened;

static void flush(void) {
    ssize_t bytes = count * sizeof *records;
    if (write(file, records, bytes) != bytes)
        _exit(1);
    count = 0;
}

static void protect(uintptr_t from, uintptr_t to, int rights) {
    if (mprotect((void *)from, to - from, rights))
        _exit(1);
}

static void on_fault(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t address = (uintptr_t)info->si_addr;
    if (address < start || address >= end)
        _exit(1);
    records[count++] = (struct record){
        registers[REG_RIP], address, (registers[REG_ERR] & WRITE) != 0};
    opened = address & -PAGE;
    protect(opened, opened + PAGE, PROT_READ | PROT_WRITE);
    registers[REG_EFL] |= TRAP_FLAG;
}

static void on_trap(int number, siginfo_t *info, void *context) {
    protect(opened, opened + PAGE, PROT_NONE);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    if (count == RECORDS)
        flush();
}

void madt_start(void *memory, size_t bytes) {
    file = open(getenv("MADT_LOG"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    action.sa_sigaction = on_trap;
    sigaction(SIGTRAP, &action, 0);
    start = (uintptr_t)memory & -PAGE;
    end = ((uintptr_t)memory + bytes + PAGE - 1) & -PAGE;
    protect(start, end, PROT_NONE);
}

void madt_stop(void) {
    protect(start, end, PROT_READ | PROT_WRITE);
    flush();
    close(file);
}
