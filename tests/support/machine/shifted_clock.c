/* Preloaded into a process to shift its wall clock by the number of seconds (an int64) in the file SHIFTED_CLOCK. A
 * change of the number takes effect immediately. The monotonic clocks are unchanged. Debian's faketime cannot be used,
 * because Python's sleeps fail with it (EINVAL).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *shift;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SHIFTED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        abort();
    void *mapped = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        abort();
    close(file);
    shift = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *found) {
    int status = (int)syscall(SYS_clock_gettime, clock, found);
    if (status == 0 && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        found->tv_sec += *shift;
    return status;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found)
        *found = now.tv_sec;
    return now.tv_sec;
}
