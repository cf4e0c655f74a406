// With LIBRARY a library that starts MPI and ends it; else a program that knows no MPI, and loads libraries as Python does its
// modules, hidden from all others: the last one's work_() is called, and the first one's start() before, where there are two.
#ifdef LIBRARY
#include <mpi.h>

void start(void) {
  MPI_Init(0, 0);
}
void finish(void) {
  MPI_Finalize();
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void* load(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    puts(dlerror());
    exit(1);
  }
  return handle;
}
static void call(void* handle, const char* name) {
  ((void (*)(void))dlsym(handle, name))();
}

int main(int argc, char** argv) {
  void* first = load(argv[1]);
  if (argc > 2) call(first, "start");
  call(argc > 2 ? load(argv[2]) : first, "work_");
  if (argc > 2) call(first, "finish");
}
#endif
