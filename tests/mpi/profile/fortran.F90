! Known traffic from Fortran, through BINDING_MPIF, BINDING_MPI or BINDING_F08; what it does is listed in `run` (FORTRAN_TRUTH).
program traffic
#ifdef BINDING_F08
  use mpi_f08
#endif
#ifdef BINDING_MPI
  use mpi
#endif
  implicit none
#ifdef BINDING_MPIF
  include 'mpif.h'
#endif
#ifdef BINDING_F08
  type(MPI_Request) :: requests(2), one
  type(MPI_Comm) :: comm
  type(MPI_Status) :: status
#else
  integer :: requests(2), one, comm, status(MPI_STATUS_SIZE)
#endif
  integer :: rank, ranks, right, left, ierror, outgoing(100), incoming(100), i, which
  logical :: flag
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)
  outgoing = rank
  call MPI_Pcontrol(1)  ! which alone has no error code
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  do i = 1, 10
    call MPI_Irecv(incoming, 100, MPI_INTEGER, MPI_ANY_SOURCE, 3, comm, requests(1), ierror)
    call MPI_Isend(outgoing, i, MPI_INTEGER, right, 3, comm, requests(2), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    if (incoming(1) /= left) call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
  end do
  call MPI_Irecv(incoming, 100, MPI_INTEGER, left, 4, comm, requests(1), ierror)
  call MPI_Isend(outgoing, 7, MPI_INTEGER, right, 4, comm, requests(2), ierror)
  do i = 1, 2
    call MPI_Waitany(2, requests, which, MPI_STATUS_IGNORE, ierror)
  end do
  call MPI_Irecv(incoming, 100, MPI_INTEGER, left, 5, comm, one, ierror)
  call MPI_Send(outgoing, 9, MPI_INTEGER, right, 5, comm, ierror)
  call MPI_Wait(one, status, ierror)
  call MPI_Allreduce(MPI_IN_PLACE, outgoing, 5, MPI_INTEGER, MPI_SUM, comm, ierror)
  call MPI_Bcast(outgoing, 4, MPI_INTEGER, 0, comm, ierror)
  call MPI_Barrier(comm, ierror)
  call MPI_Sendrecv(outgoing, 2, MPI_INTEGER, right, 6, incoming, 100, MPI_INTEGER, left, 6, comm, status, ierror)
  call MPI_Comm_free(comm, ierror)
  flag = .true.
  if (rank == 0 .and. flag) print *, 'done'
  call MPI_Finalize(ierror)
end program
