/* Calls a function that this process's MPI does not have, found as Python's ctypes finds it. Prints the error class. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int (*session_init)(void*, void*, void*) = (int (*)(void*, void*, void*))dlsym(RTLD_DEFAULT, "MPI_Session_init");
  int class = -1;
  if (session_init) MPI_Error_class(session_init(0, 0, 0), &class);
  printf("%s\n", !session_init ? "not offered" : class == MPI_ERR_UNSUPPORTED_OPERATION ? "unsupported" : "other");
  MPI_Finalize();
  return 0;
}
