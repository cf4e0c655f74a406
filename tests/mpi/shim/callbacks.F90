! What a C library does in the callbacks of a Fortran call is taken over as everywhere, and completed.
program callbacks
#ifdef BINDING_F08
  use mpi_f08
#endif
#ifdef BINDING_MPI
  use mpi
#endif
  use, intrinsic :: iso_c_binding
  implicit none
#ifdef BINDING_MPIF
  include 'mpif.h'
#endif
  interface
    subroutine attach_library(comm, rank) bind(c)
      import :: c_int
      integer(c_int), value :: comm, rank
    end subroutine
    function result_of_library() bind(c) result(total)
      import :: c_int
      integer(c_int) :: total
    end function
  end interface
#ifdef BINDING_F08
  type(MPI_Comm) :: comm
#else
  integer :: comm
#endif
  integer :: rank, ranks, ierror
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
#ifdef BINDING_F08
  call attach_library(comm%MPI_VAL, rank)
#else
  call attach_library(comm, rank)
#endif
  call MPI_Comm_free(comm, ierror)
  if (result_of_library() /= ranks * (ranks + 1) / 2) then
    print *, 'wrong', result_of_library()
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end if
  call MPI_Finalize(ierror)
end program
