// Preloaded into a process (LD_PRELOAD), steps its wall clock by the nanoseconds in the first 8 bytes of the file that
// CLOCK_SHIM_FILE names, and its monotonic clocks by those in the next 8: as if it had been suspended, they fall behind. What
// counts a suspend too (CLOCK_BOOTTIME, /proc/uptime) stays as it is. Asks the kernel itself: looking up libc's functions
// (dlsym) allocates memory, and jemalloc asks for the time while it sets itself up.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL

static const volatile int64_t *offsets_ns;

__attribute__((constructor)) static void open_offset(void) {
  const char *path = getenv("CLOCK_SHIM_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *shared = mmap(NULL, 2 * sizeof *offsets_ns, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (shared != MAP_FAILED) offsets_ns = shared;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  int is_monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_MONOTONIC_RAW;
  if (!offsets_ns || (!is_wall && !is_monotonic)) return (int)syscall(SYS_clock_gettime, clock, now);
  const volatile int64_t *offset_ns = &offsets_ns[is_wall ? 0 : 1];
  int64_t before_ns;
  // A process is stopped on its way out of the kernel. The time of before the stop with the offset of after it would be a
  // monotonic clock that goes backwards.
  do {
    before_ns = *offset_ns;
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result != 0) return result;
  } while (before_ns != *offset_ns);
  int64_t ns = now->tv_sec * SECOND_NS + now->tv_nsec + before_ns;
  now->tv_sec = ns / SECOND_NS;
  now->tv_nsec = ns % SECOND_NS;
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *copy) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (copy) *copy = now.tv_sec;
  return now.tv_sec;
}
