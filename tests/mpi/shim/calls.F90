! Calls MPI through one of Fortran's bindings (BINDING_MPIF, BINDING_MPI or BINDING_F08), checks the results, and prints
! the counts that a record must show, one "name count" a line.
#if defined(BINDING_F08)
#define REQUEST type(MPI_Request)
#define DATATYPE type(MPI_Datatype)
#define ERROR
#else
#define REQUEST integer
#define DATATYPE integer
#define ERROR , ierror
#endif
program calls
#if defined(BINDING_F08)
  use mpi_f08
#elif defined(BINDING_MPI)
  use mpi
#endif
  implicit none
#if defined(BINDING_MPIF)
  include 'mpif.h'
#endif
  integer :: ierror, rank, ranks, i, first, wrong
  integer :: in_place(4), largest, token
  double precision :: mine, total
  logical :: flags(2), all_set(2)
  REQUEST :: requests(2)
  integer, parameter :: most = 64
  integer :: sent(most), received(most), counts(most), places(most), bytes(most)
  DATATYPE :: types(most)

  wrong = 0
  ierror = 0
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank ERROR)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks ERROR)

  ! neighbours
  token = -1
  first = rank
  call MPI_Irecv(token, 1, MPI_INTEGER, mod(rank + ranks - 1, ranks), 5, MPI_COMM_WORLD, requests(1) ERROR)
  call MPI_Isend(first, 1, MPI_INTEGER, mod(rank + 1, ranks), 5, MPI_COMM_WORLD, requests(2) ERROR)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE ERROR)
  if (token /= mod(rank + ranks - 1, ranks)) wrong = wrong + 1

  ! collectives that may be taken over
  mine = rank + 1
  do i = 1, 3
    ierror = -1
    call MPI_Allreduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
    if (ierror /= MPI_SUCCESS .or. total /= ranks * (ranks + 1) / 2.0d0) wrong = wrong + 1
  end do
  in_place = [rank, 2 * rank, 3 * rank, 1]
  call MPI_Allreduce(MPI_IN_PLACE, in_place, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD ERROR)
  if (in_place(1) /= ranks * (ranks - 1) / 2 .or. in_place(4) /= ranks) wrong = wrong + 1
  flags = [.true., rank == 0]
  call MPI_Allreduce(flags, all_set, 2, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD ERROR)
  if (.not. all_set(1) .or. (all_set(2) .and. ranks > 1)) wrong = wrong + 1
  first = merge(42, 0, rank == ranks - 1)
  call MPI_Bcast(first, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD ERROR)
  if (first /= 42) wrong = wrong + 1
  largest = -1
  call MPI_Reduce(rank, largest, 1, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD ERROR)
  if (rank == 0 .and. largest /= ranks - 1) wrong = wrong + 1
  largest = rank
  if (rank == 0) then
    call MPI_Reduce(MPI_IN_PLACE, largest, 1, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD ERROR)
  else
    call MPI_Reduce(largest, largest, 1, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD ERROR)
  end if
  if (rank == 0 .and. largest /= ranks - 1) wrong = wrong + 1
  call MPI_Barrier(MPI_COMM_WORLD ERROR)

  call MPI_Scan(rank, token, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD ERROR)
  if (token /= rank * (rank + 1) / 2) wrong = wrong + 1

  ! arrays of counts, displacements and types; blocks in reverse order
  do i = 1, ranks
    sent(i) = 100 * rank + i
    counts(i) = 1
    places(i) = ranks - i
    bytes(i) = 4 * (ranks - i)
    types(i) = MPI_INTEGER
  end do
  received = -1
  call MPI_Allgatherv(rank, 1, MPI_INTEGER, received, counts, places, MPI_INTEGER, MPI_COMM_WORLD ERROR)
  do i = 1, ranks
    if (received(ranks - i + 1) /= i - 1) wrong = wrong + 1
  end do
  received = -1
  call MPI_Alltoallw(sent, counts, bytes, types, received, counts, bytes, types, MPI_COMM_WORLD ERROR)
  do i = 1, ranks
    if (received(ranks - i + 1) /= 100 * (i - 1) + ranks - rank) wrong = wrong + 1
  end do
  call MPI_Reduce_scatter(sent, token, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD ERROR)
  if (token /= 50 * ranks * (ranks - 1) + ranks * (rank + 1)) wrong = wrong + 1
  if (rank == 0) then
    call MPI_Scatter(sent, 1, MPI_INTEGER, MPI_IN_PLACE, 1, MPI_INTEGER, 0, MPI_COMM_WORLD ERROR)
  else
    call MPI_Scatter(sent, 1, MPI_INTEGER, token, 1, MPI_INTEGER, 0, MPI_COMM_WORLD ERROR)
    if (token /= rank + 1) wrong = wrong + 1
  end if

  ! a collective that is only counted
  call MPI_Ibarrier(MPI_COMM_WORLD, requests(1) ERROR)
  call MPI_Waitall(1, requests, MPI_STATUSES_IGNORE ERROR)

  call MPI_Finalize(ierror)
  if (wrong > 0) print '(a,i0)', 'wrong results: ', wrong
  if (rank == 0) then
    print '(a)', 'MPI_Init 1', 'MPI_Irecv 1', 'MPI_Isend 1', 'MPI_Waitall 2', 'MPI_Allreduce 5', 'MPI_Bcast 1', 'MPI_Reduce 2'
    print '(a)', 'MPI_Barrier 1', 'MPI_Scan 1', 'MPI_Allgatherv 1', 'MPI_Alltoallw 1', 'MPI_Reduce_scatter 1'
    print '(a)', 'MPI_Scatter 1', 'MPI_Ibarrier 1', 'MPI_Finalize 1'
  end if
end program calls
