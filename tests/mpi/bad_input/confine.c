/* confine [--deny-memfd] [--deny-cma] [--limit-file BYTES] [--limit-memory BYTES] PROGRAM ...
 * Runs a program with system calls refused (EPERM, as a container's seccomp profile does) or resources limited. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void deny(int number) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof code[0], code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    perror("confine: seccomp");
    exit(125);
  }
}

static void limit(int resource, const char* bytes) {
  rlim_t most = (rlim_t)strtoull(bytes, NULL, 10);
  struct rlimit both = {most, most};
  if (setrlimit(resource, &both)) {
    perror("confine: setrlimit");
    exit(125);
  }
}

int main(int argc, char** argv) {
  int i = 1;
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; ++i) {
    if (!strcmp(argv[i], "--deny-memfd"))
      deny(SYS_memfd_create);
    else if (!strcmp(argv[i], "--deny-cma"))
      deny(SYS_process_vm_readv), deny(SYS_process_vm_writev);
    else if (!strcmp(argv[i], "--limit-file"))
      limit(RLIMIT_FSIZE, argv[++i]);
    else if (!strcmp(argv[i], "--limit-memory"))
      limit(RLIMIT_AS, argv[++i]);
  }
  if (i < argc) execvp(argv[i], argv + i);
  perror("confine");
  return 125;
}
