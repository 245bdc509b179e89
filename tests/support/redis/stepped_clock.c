/* A wall clock that a test can step while the program runs; preloaded into redis-server by
 * tests/support/redis/server.py.
 *
 * Input: the environment variable STEPPED_CLOCK names a file of eight bytes, which says how many seconds the wall clock
 * is ahead, as a signed number in the machine's byte order. A change takes effect at the next call. The monotonic clock
 * is unchanged, as when a real clock is stepped. Debian's faketime does not work here: redis-server's jemalloc reads the
 * time while faketime is still looking up the real function, and neither recovers.
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

static const volatile int64_t none = 0;
static const volatile int64_t *ahead = &none;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("STEPPED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        abort(); /* otherwise a test would prove nothing, because the clock would not step */
    close(file);
    ahead = page;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int status = (int)syscall(SYS_clock_gettime, clock, now);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *ahead;
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec found;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &found) != 0)
        return -1;
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec found;
    if (clock_gettime(CLOCK_REALTIME, &found) != 0)
        return -1;
    if (now)
        *now = found.tv_sec;
    return found.tv_sec;
}
