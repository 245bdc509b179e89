/* Simulates a disk with a slow fsync; preloaded into redis-server by tests/support/redis/server.py.
 *
 * SLOW_FSYNC_FOLDER/milliseconds contains the delay and is read at each call. While a call is delayed, the file
 * SLOW_FSYNC_FOLDER/busy exists, which shows a test when to kill. The delay comes before the real call, so data written
 * during the delay is not on the disk yet.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void path_of(char *path, size_t size, const char *name)
{
    const char *folder = getenv("SLOW_FSYNC_FOLDER");
    snprintf(path, size, "%s/%s", folder ? folder : "/nonexistent", name);
}

static long milliseconds(void)
{
    char path[256], text[32] = "0";
    path_of(path, sizeof path, "milliseconds");
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    ssize_t length = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    text[length > 0 ? length : 0] = 0;
    return atol(text);
}

static void delay(void)
{
    long wanted = milliseconds();
    if (wanted <= 0) return;
    char busy[256];
    path_of(busy, sizeof busy, "busy");
    close(open(busy, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    struct timespec left = {wanted / 1000, wanted % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) continue;
    unlink(busy);
}

static int real(const char *name, int descriptor)
{
    int (*call)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return call(descriptor);
}

int fsync(int descriptor)
{
    delay();
    return real("fsync", descriptor);
}

int fdatasync(int descriptor)
{
    delay();
    return real("fdatasync", descriptor);
}
