/* Runs traffic.c: linked with it and so with NCCL, or (LOCAL) by loading it the way Python loads its modules, after another that
 * is not used (BESIDE), or (NONE) not at all. */
#include <dlfcn.h>
#include <stdio.h>

#if defined(LOCAL)
int main(int argc, char** argv) {
#if defined(BESIDE)
  if (!dlopen(BESIDE, RTLD_NOW | RTLD_LOCAL)) return 5;
#endif
  void* library = dlopen(TRAFFIC, RTLD_NOW | RTLD_LOCAL);
  int (*run)(int, char**) = library ? (int (*)(int, char**))dlsym(library, "run") : 0;
  if (!run) return fprintf(stderr, "%s\n", dlerror()), 4;
  return run(argc, argv);
}
#elif defined(NONE)
int main(void) {
  return 0;
}
#else
int run(int argc, char** argv);
int main(int argc, char** argv) {
  return run(argc, argv);
}
#endif
