! Nonblocking and, where MPI has them (HAVE_PERSISTENT), persistent collectives through one of Fortran's bindings (BINDING_MPIF,
! BINDING_MPI or BINDING_F08), whose results are checked. Prints what a record must show: "MPI_X count" of the calls, and "taken
! kind count" of those that Stretto must have done itself.
#if defined(BINDING_F08)
#define REQUEST type(MPI_Request)
#define DATATYPE type(MPI_Datatype)
#define ERROR
#else
#define REQUEST integer
#define DATATYPE integer
#define ERROR , ierror
#endif
program nonblocking
#if defined(BINDING_F08)
  use mpi_f08
#elif defined(BINDING_MPI)
  use mpi
#endif
  implicit none
#if defined(BINDING_MPIF)
  include 'mpif.h'
#endif
  integer, parameter :: most = 64, length = 500, long = 100000
  integer :: ierror, rank, ranks, i, wrong, which, done, seed
  logical :: flag
  double precision, target :: mine(long), total(long)
  integer, target :: in_place(length), told(2 * length)
  integer :: sent(most), received(most), swapped(most), counts(most), bytes(most)
  integer(kind=MPI_ADDRESS_KIND) :: address(2)
  DATATYPE :: types(most), apart
  REQUEST :: requests(5), request

  wrong = 0
  ierror = 0
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank ERROR)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks ERROR)
  ! two stretches of one array, by their addresses
  call MPI_Get_address(told(1), address(1) ERROR)
  call MPI_Get_address(told(length + 101), address(2) ERROR)
  call MPI_Type_create_hindexed(2, [100, 200], address, MPI_INTEGER, apart ERROR)
  call MPI_Type_commit(apart ERROR)
  do i = 1, ranks
    counts(i) = 1
    bytes(i) = 4 * (ranks - i)
    types(i) = MPI_INTEGER
  end do

  ! memory that only a blocking call may ask for
  call MPI_Allreduce(mine, total, long, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)

  ! one at a time, with an error code
  do i = 1, 2
    call prepare(i)
    call MPI_Iallreduce(mine, total, merge(length, long, i == 1), MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, request, ierror)
    if (ierror /= MPI_SUCCESS) wrong = wrong + 1
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN ERROR)
    call MPI_Cancel(request, ierror)
    if (ierror == MPI_SUCCESS) wrong = wrong + 1
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL ERROR)
    ierror = -1
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    if (ierror /= MPI_SUCCESS .or. request /= MPI_REQUEST_NULL) wrong = wrong + 1
    call compare_total(merge(length, long, i == 1))
  end do
  call MPI_Ibarrier(MPI_COMM_WORLD, request ERROR)
  flag = .false.
  do while (.not. flag)
    call MPI_Test(request, flag, MPI_STATUS_IGNORE ERROR)
  end do

  ! by its PMPI name
  call prepare(3)
  call MPI_Iallreduce(mine, total, length, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, request ERROR)
  call PMPI_Wait(request, MPI_STATUS_IGNORE ERROR)
  call compare_total(length)

  ! several at once, with the constants that are addresses; twice, completed in another way
  do i = 3, 4
    call prepare(i)
    call MPI_Iallreduce(mine, total, length, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, requests(1) ERROR)
    call MPI_Iallreduce(MPI_IN_PLACE, in_place, length, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2) ERROR)
    call MPI_Ibcast(MPI_BOTTOM, 1, apart, ranks - 1, MPI_COMM_WORLD, requests(3) ERROR)
    call MPI_Ialltoallw(sent, counts, bytes, types, received, counts, bytes, types, MPI_COMM_WORLD, requests(4) ERROR)
    call MPI_Ialltoallw(MPI_IN_PLACE, counts, bytes, types, swapped, counts, bytes, types, MPI_COMM_WORLD, requests(5) ERROR)
    if (i == 3) then
      call MPI_Waitall(5, requests, MPI_STATUSES_IGNORE ERROR)
    else
      do which = 1, 5
        call MPI_Waitany(5, requests, done, MPI_STATUS_IGNORE ERROR)
      end do
    end if
    call compare_all
  end do
#if defined(HAVE_PERSISTENT)
  call persistent
#endif

  call MPI_Type_free(apart ERROR)
  call MPI_Finalize(ierror)
  if (wrong > 0) print '(a,i0)', 'wrong results: ', wrong
  if (rank == 0) then
    print '(a)', 'MPI_Iallreduce 7', 'MPI_Ibcast 2', 'MPI_Ialltoallw 4', 'MPI_Ibarrier 1'
    print '(a)', 'MPI_Cancel 2', 'MPI_Waitany 5', 'MPI_Finalize 1'
#if defined(HAVE_PERSISTENT) && !defined(BINDING_F08)
    print '(a)', 'MPI_Wait 3' ! MPICH's PMPI_WAIT calls C's MPI_Wait
#else
    print '(a)', 'MPI_Wait 2'
#endif
#if defined(HAVE_PERSISTENT)
    print '(a)', 'MPI_Allreduce_init 2', 'MPI_Bcast_init 1', 'MPI_Alltoallw_init 2', 'MPI_Request_free 5'
    print '(a)', 'MPI_Start 5', 'MPI_Startall 2', 'MPI_Waitall 4', 'taken barrier 1'
    print '(a)', 'taken allreduce 14', 'taken bcast 5', 'taken alltoallw 10'
#else
    print '(a)', 'MPI_Waitall 1', 'taken barrier 1', 'taken allreduce 8', 'taken bcast 2', 'taken alltoallw 4'
#endif
  end if

contains

  subroutine prepare(number)
    integer, intent(in) :: number
    integer :: k
    seed = number
    do k = 1, long
      mine(k) = mod(k * seed + rank, 97)
    end do
    total = -1
    do k = 1, length
      in_place(k) = rank * k + seed
    end do
    told = -1
    if (rank == ranks - 1) told = [(k + seed, k=1, 2 * length)]
    sent = [(100 * rank + k + seed, k=1, most)]
    received = -1
    swapped = sent
  end subroutine

  ! What rank r has given, as prepare makes it: MPICH's Fortran has no functions of its own below MPI's to ask.
  subroutine compare_total(count)
    integer, intent(in) :: count
    integer :: k, r
    do k = 1, count
      if (total(k) /= sum([(mod(k * seed + r, 97), r=0, ranks - 1)])) wrong = wrong + 1
    end do
  end subroutine

  subroutine compare_all
    integer :: k, r
    logical :: covered
    do k = 1, length
      if (total(k) /= maxval([(mod(k * seed + r, 97), r=0, ranks - 1)])) wrong = wrong + 1
      if (in_place(k) /= k * ranks * (ranks - 1) / 2 + seed * ranks) wrong = wrong + 1
    end do
    do k = 1, 2 * length
      covered = k <= 100 .or. (k > length + 100 .and. k <= length + 300)
      if (told(k) /= merge(k + seed, -1, covered .or. rank == ranks - 1)) wrong = wrong + 1
    end do
    do k = 1, most
      r = ranks - k
      if (received(k) /= merge(100 * r + ranks - rank + seed, -1, r >= 0)) wrong = wrong + 1
      if (swapped(k) /= merge(100 * r + ranks - rank + seed, sent(k), r >= 0)) wrong = wrong + 1
    end do
  end subroutine

#if defined(HAVE_PERSISTENT)
  ! Arrays and datatype may change once it is prepared.
  subroutine persistent
    integer :: own_counts(most), own_bytes(most), round
    DATATYPE :: own_types(most), own_apart
    own_counts = counts
    own_bytes = bytes
    own_types = types
    call MPI_Type_dup(apart, own_apart ERROR)
    call MPI_Allreduce_init(mine, total, length, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1) ERROR)
    call MPI_Allreduce_init(MPI_IN_PLACE, in_place, length, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2) &
                            ERROR)
    call MPI_Bcast_init(MPI_BOTTOM, 1, own_apart, ranks - 1, MPI_COMM_WORLD, MPI_INFO_NULL, requests(3) ERROR)
    call MPI_Alltoallw_init(sent, own_counts, own_bytes, own_types, received, own_counts, own_bytes, own_types, &
                            MPI_COMM_WORLD, MPI_INFO_NULL, requests(4) ERROR)
    ierror = -1
    call MPI_Alltoallw_init(MPI_IN_PLACE, own_counts, own_bytes, own_types, swapped, own_counts, own_bytes, own_types, &
                            MPI_COMM_WORLD, MPI_INFO_NULL, requests(5), ierror)
    if (ierror /= MPI_SUCCESS) wrong = wrong + 1
    own_counts = -1
    own_bytes = -1
    own_types = MPI_DATATYPE_NULL
    call MPI_Type_free(own_apart ERROR)
    do round = 5, 7
      call prepare(round)
      if (round == 6) then
        do which = 5, 1, -1
          ierror = -1
          call MPI_Start(requests(which), ierror)
          if (ierror /= MPI_SUCCESS) wrong = wrong + 1
        end do
      else
        call MPI_Startall(5, requests ERROR)
      end if
      call MPI_Waitall(5, requests, MPI_STATUSES_IGNORE ERROR)
      if (any_null()) wrong = wrong + 1
      call compare_all
    end do
    do which = 1, 5
      call MPI_Request_free(requests(which) ERROR)
      if (requests(which) /= MPI_REQUEST_NULL) wrong = wrong + 1
    end do
  end subroutine

  logical function any_null()
    any_null = .false.
    do which = 1, 5
      if (requests(which) == MPI_REQUEST_NULL) any_null = .true.
    end do
  end function
#endif
end program nonblocking
