/* Stands for sbatch, squeue, scancel and scontrol in slurm_scale.py: hands its name and arguments to the process that
 * plays the cluster, at the socket FAKE_SLURM, and prints the answer, whose first byte is the exit status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int fail(const char* what) {
  perror(what);
  return 1;
}

int main(int argc, char** argv) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const char* path = getenv("FAKE_SLURM");
  if (path == NULL || strlen(path) >= sizeof address.sun_path) return fail("FAKE_SLURM");
  strcpy(address.sun_path, path);
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  if (server < 0 || connect(server, (struct sockaddr*)&address, sizeof address) != 0) return fail("connect");
  for (int i = 0; i < argc; ++i) {
    const size_t size = strlen(argv[i]) + 1;
    if (write(server, argv[i], size) != (ssize_t)size) return fail("write");
  }
  shutdown(server, SHUT_WR);
  static char buffer[1 << 16];
  int status = -1;
  ssize_t got = 0;
  while ((got = read(server, buffer, sizeof buffer)) > 0) {
    const size_t skipped = status < 0;
    if (skipped) status = buffer[0];
    fwrite(buffer + skipped, 1, (size_t)got - skipped, stdout);
  }
  return status < 0 ? fail("no answer") : status;
}
