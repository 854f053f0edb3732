/* Records what dsat-host writes below a folder, in order, with every sync: power_loss.py makes of it what a disk would
 * hold after the power went at any moment.
 *
 * LD_PRELOAD this library, with POWER_LOSS_DIR (the folder) and POWER_LOSS_LOG (where to record). Only a process named
 * dsat-host records; its children run as they would. A record is a line "KIND NUMBER LENGTH PATH", NUMBER being an
 * offset or a size, and LENGTH bytes after it. It stands in the log before the call returns. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static const char* folder;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
  char program[4096];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
  folder = getenv("POWER_LOSS_DIR");
  const char* log = getenv("POWER_LOSS_LOG");
  if (size <= 0 || folder == NULL || log == NULL) return;
  program[size] = '\0';
  if (strcmp(strrchr(program, '/'), "/dsat-host") != 0) return;
  log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void put(const char* data, size_t size) {
  while (size > 0) {
    const long n = syscall(SYS_write, log_fd, data, size);
    if (n <= 0) return;
    data += n;
    size -= (size_t)n;
  }
}

static void record(const char* kind, long long number, const char* path, const void* data, size_t size) {
  if (log_fd < 0 || strncmp(path, folder, strlen(folder)) != 0) return;
  const int kept = errno;
  char line[4400];
  const int length = snprintf(line, sizeof line, "%s %lld %zu %s\n", kind, number, size, path);
  pthread_mutex_lock(&lock);
  put(line, (size_t)length);
  if (data != NULL) put(data, size);
  pthread_mutex_unlock(&lock);
  errno = kept;
}

/* The path of a descriptor as the kernel has it now, after renames too. */
static int path_of(int fd, char* path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = log_fd < 0 ? -1 : readlink(link, path, size - 1);
  if (n <= 0) return 0;
  path[n] = '\0';
  return path[0] == '/';
}

static void full_path(const char* path, char* full, size_t size) {
  char cwd[4096];
  if (path[0] == '/' || getcwd(cwd, sizeof cwd) == NULL) {
    snprintf(full, size, "%s", path);
  } else {
    snprintf(full, size, "%s/%s", cwd, path);
  }
}

static void record_write(int fd, const void* data, ssize_t done, off_t at) {
  char path[4096];
  if (done > 0 && path_of(fd, path, sizeof path)) record("write", at, path, data, (size_t)done);
}

static void record_open(const char* path, int flags, int fd, int existed) {
  char full[8400];
  if (fd < 0 || log_fd < 0) return;
  full_path(path, full, sizeof full);
  if ((flags & O_CREAT) && !existed) record("create", 0, full, NULL, 0);
  if (flags & O_TRUNC) record("truncate", 0, full, NULL, 0);
}

static int opened(const char* name, const char* path, int flags, mode_t mode) {
  struct stat info;
  const int existed = stat(path, &info) == 0;
  int (*real)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, name);
  const int fd = real(path, flags, mode);
  record_open(path, flags, fd, existed);
  return fd;
}

static mode_t mode_of(int flags, va_list* rest) { return flags & O_CREAT ? va_arg(*rest, mode_t) : 0; }

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, &rest);
  va_end(rest);
  return opened("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, &rest);
  va_end(rest);
  return opened("open64", path, flags, mode);
}

ssize_t write(int fd, const void* data, size_t size) {
  const off_t at = log_fd < 0 ? 0 : lseek(fd, 0, SEEK_CUR);
  const ssize_t done = REAL(write)(fd, data, size);
  record_write(fd, data, done, at);
  return done;
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  const ssize_t done = REAL(pwrite)(fd, data, size, at);
  record_write(fd, data, done, at);
  return done;
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  const ssize_t done = REAL(pwrite64)(fd, data, size, at);
  record_write(fd, data, done, at);
  return done;
}
static void record_truncate(int fd, int status, off_t size) {
  char path[4096];
  if (status == 0 && path_of(fd, path, sizeof path)) record("truncate", size, path, NULL, 0);
}
int ftruncate(int fd, off_t size) {
  const int status = REAL(ftruncate)(fd, size);
  record_truncate(fd, status, size);
  return status;
}
int ftruncate64(int fd, off64_t size) {
  const int status = REAL(ftruncate64)(fd, size);
  record_truncate(fd, status, size);
  return status;
}
static void record_sync(int fd, int status) {
  char path[4096];
  if (status == 0 && path_of(fd, path, sizeof path)) record("sync", 0, path, NULL, 0);
}
int fsync(int fd) {
  const int status = REAL(fsync)(fd);
  record_sync(fd, status);
  return status;
}
int fdatasync(int fd) {
  const int status = REAL(fdatasync)(fd);
  record_sync(fd, status);
  return status;
}
int rename(const char* from, const char* to) {
  char source[8400], target[8400];
  full_path(from, source, sizeof source);
  full_path(to, target, sizeof target);
  const int status = REAL(rename)(from, to);
  if (status == 0) record("rename", 0, source, target, strlen(target));
  return status;
}
static void record_name(const char* kind, const char* path, int status) {
  char full[8400];
  full_path(path, full, sizeof full);
  if (status == 0) record(kind, 0, full, NULL, 0);
}
int unlink(const char* path) {
  const int status = REAL(unlink)(path);
  record_name("unlink", path, status);
  return status;
}
int remove(const char* path) {
  const int status = REAL(remove)(path);
  record_name("unlink", path, status);
  return status;
}
int mkdir(const char* path, mode_t mode) {
  const int status = REAL(mkdir)(path, mode);
  record_name("mkdir", path, status);
  return status;
}
