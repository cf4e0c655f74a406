#include "base_type.hpp"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

namespace differential {
namespace {

#if defined(__SIZEOF_FLOAT128__)
using Quad = __float128;
#else
using Quad = long double;
#endif

template <class T>
T load(const unsigned char* from) {
  T value;
  memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
void store(unsigned char* to, T value) {
  memcpy(to, &value, sizeof(T));
}

template <class T>
constexpr double epsilon() {
  if constexpr (std::is_same_v<T, Quad>)
    return 0x1p-112;
  else
    return double(std::numeric_limits<T>::epsilon());
}

// How many bytes of T carry its value: x87's long double has ten.
template <class T>
constexpr size_t value_bytes() {
  return std::is_same_v<T, long double> && std::numeric_limits<long double>::digits == 64 ? 10 : sizeof(T);
}

template <class T>
T absolute(T x) {
  return x < 0 ? -x : x;
}

template <class T>
void draw_integer(Random& random, bool, unsigned char* to) {
  // Mostly small values, so that ties, zeros and logical operations are exercised; sometimes all bits.
  store<T>(to, T(random.one_in(2) ? random.bits() : random.below(7) - random.below(2)));
}

template <class T>
void draw_logical(Random& random, bool, unsigned char* to) {
  store<T>(to, T(random.below(2)));
}

template <class T>
T draw_real(Random& random, bool product) {
  T value = product ? T(0.5 + 1.5 * random.unit()) : T(std::ldexp(random.unit(), -int(random.below(12))));
  return random.one_in(2) ? value : -value;
}

template <class T>
void draw_floating(Random& random, bool product, unsigned char* to) {
  store(to, draw_real<T>(random, product));
}

template <class T>
void draw_complex(Random& random, bool product, unsigned char* to) {
  store(to, draw_real<T>(random, product));
  store(to + sizeof(T), draw_real<T>(random, product));
}

template <class V, class Pair>
void draw_pair(Random& random, bool, unsigned char* to) {
  store(to + offsetof(Pair, value), V(random.below(5)));
  store(to + offsetof(Pair, index), decltype(Pair::index)(random.below(100)));
}

bool close_exact(const unsigned char*, const unsigned char*, const unsigned char*, double) {
  return false;
}

template <class T>
bool close_logical(const unsigned char* a, const unsigned char* b, const unsigned char*, double) {
  return (load<T>(a) != 0) == (load<T>(b) != 0);
}

template <class T>
bool close_floating(const unsigned char* a, const unsigned char* b, const unsigned char* scale, double slack) {
  T x = load<T>(a), y = load<T>(b), size = absolute(scale ? load<T>(scale) : y);
  return x == y || absolute(T(x - y)) <= T(slack * epsilon<T>()) * size;
}

// With a scale (sums) each part on its own; without (products) relative to the modulus.
template <class T>
bool close_complex(const unsigned char* a, const unsigned char* b, const unsigned char* scale, double slack) {
  if (scale)
    return close_floating<T>(a, b, scale, slack) && close_floating<T>(a + sizeof(T), b + sizeof(T), scale + sizeof(T), slack);
  T modulus[2];
  modulus[0] = modulus[1] = absolute(load<T>(b)) + absolute(load<T>(b + sizeof(T)));
  return close_complex<T>(a, b, reinterpret_cast<unsigned char*>(modulus), 8 * slack);
}

template <class T>
void magnitude_floating(const unsigned char* from, unsigned char* to) {
  store(to, absolute(load<T>(from)));
}

template <class T>
void magnitude_complex(const unsigned char* from, unsigned char* to) {
  magnitude_floating<T>(from, to);
  magnitude_floating<T>(from + sizeof(T), to + sizeof(T));
}

template <class T>
void choose_integer(bool larger, const unsigned char* in, unsigned char* inout) {
  T a = load<T>(in), b = load<T>(inout);
  store(inout, larger == (a > b) ? a : b);
}

template <class V, class I>
struct PairOf {
  V value;
  I index;
};

class Table {
 public:
  std::vector<BaseType> rows;

  template <class T>
  void integer(const char* name, MPI_Datatype handle) {
    add({name, handle, sizeof(T), Family::integer, {{0, sizeof(T)}}, draw_integer<T>, close_exact, nullptr, choose_integer<T>},
        sizeof(T));
  }
  template <class T>
  void opaque(const char* name, MPI_Datatype handle, Family family = Family::opaque) {
    add({name, handle, sizeof(T), family, {{0, sizeof(T)}}, draw_integer<T>, close_exact, nullptr, nullptr}, sizeof(T));
  }
  template <class T>
  void logical(const char* name, MPI_Datatype handle) {
    add({name, handle, sizeof(T), Family::logical, {{0, sizeof(T)}}, draw_logical<T>, close_logical<T>, nullptr, nullptr},
        sizeof(T));
  }
  template <class T>
  void floating(const char* name, MPI_Datatype handle) {
    add({name,
         handle,
         sizeof(T),
         Family::floating,
         {{0, value_bytes<T>()}},
         draw_floating<T>,
         close_floating<T>,
         magnitude_floating<T>,
         nullptr},
        sizeof(T));
  }
  template <class T>
  void complex(const char* name, MPI_Datatype handle) {
    add({name,
         handle,
         2 * sizeof(T),
         Family::complex,
         {{0, value_bytes<T>()}, {sizeof(T), value_bytes<T>()}},
         draw_complex<T>,
         close_complex<T>,
         magnitude_complex<T>,
         nullptr},
        2 * sizeof(T));
  }
  template <class V, class I = int>
  void pair(const char* name, MPI_Datatype handle) {
    using P = PairOf<V, I>;
    add({name,
         handle,
         sizeof(P),
         Family::pair,
         {{0, value_bytes<V>()}, {offsetof(P, index), sizeof(I)}},
         draw_pair<V, P>,
         close_exact,
         nullptr,
         nullptr},
        sizeof(V) + sizeof(I));
  }

 private:
  // Types that this library lacks (no Fortran, another width) are left out.
  void add(BaseType row, size_t expected_size) {
    int size = 0;
    if (row.handle == MPI_DATATYPE_NULL || PMPI_Type_size(row.handle, &size) != MPI_SUCCESS) return;
    if (size == int(expected_size)) rows.push_back(std::move(row));
  }
};

void add_c_types(Table& t) {
  t.integer<signed char>("MPI_SIGNED_CHAR", MPI_SIGNED_CHAR);
  t.integer<unsigned char>("MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR);
  t.integer<short>("MPI_SHORT", MPI_SHORT);
  t.integer<unsigned short>("MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT);
  t.integer<int>("MPI_INT", MPI_INT);
  t.integer<unsigned>("MPI_UNSIGNED", MPI_UNSIGNED);
  t.integer<long>("MPI_LONG", MPI_LONG);
  t.integer<unsigned long>("MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG);
  t.integer<long long>("MPI_LONG_LONG", MPI_LONG_LONG);
  t.integer<unsigned long long>("MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG);
  t.integer<int8_t>("MPI_INT8_T", MPI_INT8_T);
  t.integer<int16_t>("MPI_INT16_T", MPI_INT16_T);
  t.integer<int32_t>("MPI_INT32_T", MPI_INT32_T);
  t.integer<int64_t>("MPI_INT64_T", MPI_INT64_T);
  t.integer<uint8_t>("MPI_UINT8_T", MPI_UINT8_T);
  t.integer<uint16_t>("MPI_UINT16_T", MPI_UINT16_T);
  t.integer<uint32_t>("MPI_UINT32_T", MPI_UINT32_T);
  t.integer<uint64_t>("MPI_UINT64_T", MPI_UINT64_T);
  t.integer<MPI_Aint>("MPI_AINT", MPI_AINT);
  t.integer<MPI_Offset>("MPI_OFFSET", MPI_OFFSET);
  t.integer<MPI_Count>("MPI_COUNT", MPI_COUNT);
  t.logical<bool>("MPI_C_BOOL", MPI_C_BOOL);
  t.opaque<unsigned char>("MPI_BYTE", MPI_BYTE, Family::byte);
  t.opaque<char>("MPI_CHAR", MPI_CHAR);
  t.opaque<wchar_t>("MPI_WCHAR", MPI_WCHAR);
  t.floating<float>("MPI_FLOAT", MPI_FLOAT);
  t.floating<double>("MPI_DOUBLE", MPI_DOUBLE);
  t.floating<long double>("MPI_LONG_DOUBLE", MPI_LONG_DOUBLE);
  t.complex<float>("MPI_C_FLOAT_COMPLEX", MPI_C_FLOAT_COMPLEX);
  t.complex<double>("MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX);
  t.complex<long double>("MPI_C_LONG_DOUBLE_COMPLEX", MPI_C_LONG_DOUBLE_COMPLEX);
  t.complex<float>("MPI_CXX_FLOAT_COMPLEX", MPI_CXX_FLOAT_COMPLEX);
  t.complex<double>("MPI_CXX_DOUBLE_COMPLEX", MPI_CXX_DOUBLE_COMPLEX);
  t.logical<bool>("MPI_CXX_BOOL", MPI_CXX_BOOL);
}

void add_pair_types(Table& t) {
  t.pair<float>("MPI_FLOAT_INT", MPI_FLOAT_INT);
  t.pair<double>("MPI_DOUBLE_INT", MPI_DOUBLE_INT);
  t.pair<long>("MPI_LONG_INT", MPI_LONG_INT);
  t.pair<int>("MPI_2INT", MPI_2INT);
  t.pair<short>("MPI_SHORT_INT", MPI_SHORT_INT);
  t.pair<long double>("MPI_LONG_DOUBLE_INT", MPI_LONG_DOUBLE_INT);
  t.pair<float, float>("MPI_2REAL", MPI_2REAL);
  t.pair<double, double>("MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION);
  t.pair<int, int>("MPI_2INTEGER", MPI_2INTEGER);
}

void add_fortran_types(Table& t) {
  t.integer<int>("MPI_INTEGER", MPI_INTEGER);
  t.integer<int8_t>("MPI_INTEGER1", MPI_INTEGER1);
  t.integer<int16_t>("MPI_INTEGER2", MPI_INTEGER2);
  t.integer<int32_t>("MPI_INTEGER4", MPI_INTEGER4);
  t.integer<int64_t>("MPI_INTEGER8", MPI_INTEGER8);
  t.logical<int>("MPI_LOGICAL", MPI_LOGICAL);
  t.floating<float>("MPI_REAL", MPI_REAL);
  t.floating<double>("MPI_DOUBLE_PRECISION", MPI_DOUBLE_PRECISION);
  t.floating<float>("MPI_REAL4", MPI_REAL4);
  t.floating<double>("MPI_REAL8", MPI_REAL8);
#if defined(__SIZEOF_FLOAT128__)  // else MPICH ends the job when it is to add such numbers
  t.floating<Quad>("MPI_REAL16", MPI_REAL16);
  t.complex<Quad>("MPI_COMPLEX32", MPI_COMPLEX32);
#endif
  t.complex<float>("MPI_COMPLEX", MPI_COMPLEX);
  t.complex<double>("MPI_DOUBLE_COMPLEX", MPI_DOUBLE_COMPLEX);
  t.complex<float>("MPI_COMPLEX8", MPI_COMPLEX8);
  t.complex<double>("MPI_COMPLEX16", MPI_COMPLEX16);
  t.opaque<char>("MPI_CHARACTER", MPI_CHARACTER);
}

// MPI 4.1, section 6.9.2: which operations go with which group of types.
bool allowed(Family family, MPI_Op op) {
  bool order = op == MPI_MAX || op == MPI_MIN, arithmetic = op == MPI_SUM || op == MPI_PROD;
  bool logic = op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR, bitwise = op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR;
  bool location = op == MPI_MAXLOC || op == MPI_MINLOC;
  switch (family) {
    case Family::integer:
      return order || arithmetic || logic || bitwise;
    case Family::logical:
      return logic;
    case Family::byte:
      return bitwise;
    case Family::floating:
      return order || arithmetic;
    case Family::complex:
      return arithmetic;
    case Family::pair:
      return location;
    case Family::opaque:
      return false;
  }
  return false;
}

// Libraries leave holes (quadruple precision, some Fortran types): one element through PMPI_Reduce_local tells.
bool implemented(const BaseType& type, MPI_Op op) {
  Random random(1);
  alignas(64) unsigned char a[64] = {}, b[64] = {};
  type.draw(random, true, a);
  type.draw(random, true, b);
  return PMPI_Reduce_local(a, b, 1, type.handle, op) == MPI_SUCCESS;
}

// Whether the library orders integers as C does.
bool ordered(const BaseType& type, MPI_Op op) {
  if (!type.choose || (op != MPI_MAX && op != MPI_MIN)) return true;
  Random random(2);
  for (int i = 0; i < 32; ++i) {
    unsigned char a[16] = {}, mine[16] = {}, theirs[16] = {};
    type.draw(random, false, a);
    type.draw(random, false, mine);
    memcpy(theirs, mine, sizeof mine);
    type.choose(op == MPI_MAX, a, mine);
    PMPI_Reduce_local(a, theirs, 1, type.handle, op);
    if (memcmp(mine, theirs, sizeof mine) != 0) return false;
  }
  return true;
}

}  // namespace

const std::vector<BaseType>& base_types() {
  static const std::vector<BaseType> rows = [] {
    Table table;
    add_c_types(table);
    add_pair_types(table);
    add_fortran_types(table);
    return table.rows;
  }();
  return rows;
}

const BaseType& base_type(const char* name) {
  for (const BaseType& type : base_types())
    if (!strcmp(type.name, name)) return type;
  fprintf(stderr, "this MPI has no %s\n", name);
  abort();
}

std::vector<Operation> operations_on(const BaseType& type) {
  const Operation all[] = {{"MPI_MAX", MPI_MAX, true},   {"MPI_MIN", MPI_MIN, true},       {"MPI_SUM", MPI_SUM, true},
                           {"MPI_PROD", MPI_PROD, true}, {"MPI_LAND", MPI_LAND, true},     {"MPI_LOR", MPI_LOR, true},
                           {"MPI_LXOR", MPI_LXOR, true}, {"MPI_BAND", MPI_BAND, true},     {"MPI_BOR", MPI_BOR, true},
                           {"MPI_BXOR", MPI_BXOR, true}, {"MPI_MAXLOC", MPI_MAXLOC, true}, {"MPI_MINLOC", MPI_MINLOC, true}};
  std::vector<Operation> result;
  for (const Operation& op : all)
    if (allowed(type.family, op.handle) && implemented(type, op.handle))
      result.push_back({op.name, op.handle, op.commutative, ordered(type, op.handle)});
  return result;
}

}  // namespace differential
