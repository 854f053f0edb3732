/* dsat-launch HOST_PID COMMAND [ARGUMENT...]
 *
 * Runs a trial's command between the host and the command. When this process has ended, the whole process tree has
 * ended, whoever dies first:
 *   - The command runs in its own process group. SIGTERM, SIGINT and SIGHUP are passed on to it as SIGTERM, after
 *     SIGCONT for a stopped command.
 *   - SIGUSR1, and the death of the host (even by kill -9), kill everything at once.
 *   - After the command has ended, every process that it left, in any session, is killed and reaped. After a SIGTERM
 *     this waits until the command's group has ended or SIGUSR1 comes, so that the ranks have time to end.
 *   - Shared memory that DeepSpeed leaves is removed.
 *   - Then this process ends like the command: with its exit status, or by its signal.
 * Descriptor 3, if open, is the host's lock on the trial's folder. It stays open until the end, but not in the command.
 * Own exit status: 126 the command cannot be executed, 127 there is no such command (with a message on stderr), 125
 * this program failed. It needs only libc and starts in about a millisecond.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kLockDescriptor = 3, kOwnFailure = 125, kCannotExecute = 126, kNotFound = 127 };

static pid_t command_pid;
static int command_status;
static int command_ended;

static void die(const char* what) {
  fprintf(stderr, "dsat-launch: %s: %s\n", what, strerror(errno));
  exit(kOwnFailure);
}

/* Runs in the child: becomes the command, or writes the reason for failing into the pipe to the parent. */
static void become_command(char** argv, const sigset_t* mask, pid_t launcher, int report) {
  setpgid(0, 0);
  /* If this launcher is killed, the command is killed too. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(kOwnFailure);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(argv[0], argv);
  const int error = errno;
  const ssize_t written = write(report, &error, sizeof error);
  (void)written;
  _exit(kNotFound);
}

/* Waits up to ten seconds for a process if the machine has none to spare. */
static pid_t fork_patiently(void) {
  const struct timespec pause = {0, 200 * 1000 * 1000};
  for (int tries = 50;; --tries) {
    const pid_t pid = fork();
    if (pid >= 0 || (errno != EAGAIN && errno != ENOMEM) || tries == 0) return pid;
    nanosleep(&pause, NULL);
  }
}

static void start_command(char** argv, const sigset_t* mask) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) die("pipe");
  const pid_t launcher = getpid();
  command_pid = fork_patiently();
  if (command_pid < 0) die("fork");
  if (command_pid == 0) become_command(argv, mask, launcher, report[1]);
  setpgid(command_pid, command_pid); /* here too: whoever is first, the group is there before it is signalled */
  close(report[1]);
  int error = 0;
  ssize_t got;
  do {
    got = read(report[0], &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  close(report[0]);
  if (got != (ssize_t)sizeof error) return;
  waitpid(command_pid, NULL, 0);
  fprintf(stderr, "dsat-launch: cannot run '%s': %s\n", argv[0], strerror(error));
  exit(error == ENOENT ? kNotFound : kCannotExecute);
}

/* Reaps ended processes. 0: no process is left below this one. */
static int reap(void) {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0) return 1;
    if (pid < 0) return errno != ECHILD;
    if (pid == command_pid) {
      command_status = status;
      command_ended = 1;
    }
  }
}

/* Whether a process of the command's group is left. A process that lost its parent is a child of this one. */
static int group_lives(void) { return kill(-command_pid, 0) == 0 || errno == EPERM; }

/* The parent of a process, from /proc/PID/stat; 0: it is gone. The name in the file may contain ')'. */
static pid_t parent_of(const char* pid) {
  char path[300], text[512];
  snprintf(path, sizeof path, "/proc/%s/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  const char* after_name = strrchr(text, ')');
  int parent = 0;
  return after_name != NULL && sscanf(after_name + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Kills the direct children. Their children become children of this subreaper and are killed next. */
static void kill_children(void) {
  DIR* proc = opendir("/proc");
  if (proc == NULL) return;
  const pid_t self = getpid();
  for (struct dirent* entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
    const int pid = atoi(entry->d_name);
    if (pid > 0 && parent_of(entry->d_name) == self) kill(pid, SIGKILL);
  }
  closedir(proc);
}

static void kill_and_reap_all(const sigset_t* watched) {
  const struct timespec pause = {0, 20 * 1000 * 1000}; /* an adoption makes no signal: look again */
  while (reap()) {
    kill_children();
    sigtimedwait(watched, NULL, &pause);
  }
}

/* Whether a name ends with "_PORT_RANK". */
static int is_of_port(const char* name, const char* port) {
  const char* end = name + strlen(name);
  while (end > name && isdigit((unsigned char)end[-1])) --end;
  const size_t length = strlen(port);
  if (*end == '\0' || end < name + length + 2 || end[-1] != '_') return 0;
  return end[-2 - (ptrdiff_t)length] == '_' && strncmp(end - 1 - length, port, length) == 0;
}

/* DeepSpeed's ranks on processors leave a buffer of 69 MB each (csrc/cpu/comm/shm.cpp, 0.14.5), named
 * deepspeed_allreduce_buffer_UID_ADDRESS_PORT_RANK. Only this trial has the port, and no process of it is left. */
static void remove_shared_buffers(void) {
  if (getenv("DSAT_TRIAL_ID") == NULL) return; /* not a trial: the port belongs to another program */
  const char* port = getenv("MASTER_PORT");
  DIR* folder = port != NULL && *port != '\0' ? opendir("/dev/shm") : NULL;
  if (folder == NULL) return;
  char prefix[64];
  const int length = snprintf(prefix, sizeof prefix, "deepspeed_allreduce_buffer_%u_", (unsigned)getuid());
  for (struct dirent* entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    if (strncmp(entry->d_name, prefix, (size_t)length) != 0 || !is_of_port(entry->d_name + length, port)) continue;
    unlinkat(dirfd(folder), entry->d_name, 0);
  }
  closedir(folder);
}

/* Ends like the command, so that the host sees the same exit status or signal. */
static int end_like_command(void) {
  if (WIFEXITED(command_status)) return WEXITSTATUS(command_status);
  const int signal_number = WTERMSIG(command_status);
  const struct rlimit no_core = {0, 0}; /* only the command's core is of interest */
  setrlimit(RLIMIT_CORE, &no_core);
  signal(signal_number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal_number);
  raise(signal_number);
  sigprocmask(SIG_UNBLOCK, &only, NULL);
  return 128 + signal_number;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: dsat-launch HOST_PID COMMAND [ARGUMENT...]\n");
    return kOwnFailure;
  }
  fcntl(kLockDescriptor, F_SETFD, FD_CLOEXEC);
  sigset_t watched, original;
  sigemptyset(&watched);
  const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) sigaddset(&watched, signals[i]);
  sigprocmask(SIG_BLOCK, &watched, &original);

  if (prctl(PR_SET_PDEATHSIG, SIGUSR1) != 0) die("PR_SET_PDEATHSIG");
  if (getppid() != atoi(argv[1])) return kOwnFailure; /* the host died before that line: nothing is to be run */
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) die("PR_SET_CHILD_SUBREAPER");

  start_command(argv + 2, &original);
  int kill_now = 0, passed_on = 0;
  while (!kill_now && (!command_ended || (passed_on && group_lives()))) {
    const int got = sigwaitinfo(&watched, NULL);
    if (got == SIGUSR1) {
      kill_now = 1;
    } else if (got == SIGCHLD) {
      reap();
    } else if (got > 0) {
      passed_on = 1;
      kill(-command_pid, SIGTERM);
      kill(-command_pid, SIGCONT); /* one that is stopped would not get the SIGTERM */
    }
  }
  kill_and_reap_all(&watched);
  remove_shared_buffers();
  return end_like_command();
}
