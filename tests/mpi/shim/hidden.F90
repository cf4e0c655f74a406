! A library for hidden.c, which finds MPI started or starts it. Prints what a record must show: "MPI_X count" of the calls, and
! "taken kind count" of those that Stretto must have done itself.
subroutine work
#if defined(BINDING_F08)
  use mpi_f08
  implicit none
#elif defined(BINDING_MPI)
  use mpi
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer :: ierror, rank, ranks, i
  integer, target :: mine(3), theirs(3)
  logical :: started

  call MPI_Initialized(started, ierror)
  if (.not. started) call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  mine = rank
  theirs = -1
  call MPI_Sendrecv(mine, 3, MPI_INTEGER, mod(rank + 1, ranks), 0, theirs, 3, MPI_INTEGER, mod(rank + ranks - 1, ranks), 0, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  if (any(theirs /= mod(rank + ranks - 1, ranks))) print '(a)', 'wrong message'
  do i = 1, 4
    mine = i
    call MPI_Allreduce(MPI_IN_PLACE, mine, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (any(mine /= i * ranks)) print '(a)', 'wrong sum'
  end do
  if (rank == 0) print '(a)', 'MPI_Allreduce 4', 'MPI_Sendrecv 1', 'taken allreduce 4'
  if (.not. started) call MPI_Finalize(ierror)
end subroutine
