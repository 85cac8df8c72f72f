// The part of the MPICH ABI that this library uses. MPICH, Intel MPI and others have agreed on these handles
// and constants (https://www.mpich.org/abi). All of these are numbers, so the build needs no MPI library.
// fabtests/mpi/mpich_abi.py compares the numbers with the header of an installed MPICH.
#pragma once

using MPI_Comm = int;
using MPI_Datatype = int;
using MPI_Op = int;
struct MPI_Status {
  int count_lo;
  int count_hi_and_cancelled;
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
};

inline constexpr MPI_Comm MPI_COMM_WORLD = 0x44000000;
inline constexpr MPI_Comm MPI_COMM_SELF = 0x44000001;
inline constexpr MPI_Comm MPI_COMM_NULL = 0x04000000;

inline constexpr MPI_Datatype MPI_DATATYPE_NULL = 0x0c000000;
inline constexpr MPI_Datatype MPI_CHAR = 0x4c000101;
inline constexpr MPI_Datatype MPI_UNSIGNED_CHAR = 0x4c000102;
inline constexpr MPI_Datatype MPI_SIGNED_CHAR = 0x4c000118;
inline constexpr MPI_Datatype MPI_BYTE = 0x4c00010d;
inline constexpr MPI_Datatype MPI_SHORT = 0x4c000203;
inline constexpr MPI_Datatype MPI_UNSIGNED_SHORT = 0x4c000204;
inline constexpr MPI_Datatype MPI_INT = 0x4c000405;
inline constexpr MPI_Datatype MPI_UNSIGNED = 0x4c000406;
inline constexpr MPI_Datatype MPI_LONG = 0x4c000807;
inline constexpr MPI_Datatype MPI_UNSIGNED_LONG = 0x4c000808;
inline constexpr MPI_Datatype MPI_LONG_LONG = 0x4c000809;
inline constexpr MPI_Datatype MPI_UNSIGNED_LONG_LONG = 0x4c000819;
inline constexpr MPI_Datatype MPI_FLOAT = 0x4c00040a;
inline constexpr MPI_Datatype MPI_DOUBLE = 0x4c00080b;
inline constexpr MPI_Datatype MPI_LONG_DOUBLE = 0x4c00100c;
inline constexpr MPI_Datatype MPI_INT8_T = 0x4c000137;
inline constexpr MPI_Datatype MPI_INT16_T = 0x4c000238;
inline constexpr MPI_Datatype MPI_INT32_T = 0x4c000439;
inline constexpr MPI_Datatype MPI_INT64_T = 0x4c00083a;
inline constexpr MPI_Datatype MPI_UINT8_T = 0x4c00013b;
inline constexpr MPI_Datatype MPI_UINT16_T = 0x4c00023c;
inline constexpr MPI_Datatype MPI_UINT32_T = 0x4c00043d;
inline constexpr MPI_Datatype MPI_UINT64_T = 0x4c00083e;

inline constexpr MPI_Op MPI_MAX = 0x58000001;
inline constexpr MPI_Op MPI_MIN = 0x58000002;
inline constexpr MPI_Op MPI_SUM = 0x58000003;
inline constexpr MPI_Op MPI_PROD = 0x58000004;
inline constexpr MPI_Op MPI_LAND = 0x58000005;
inline constexpr MPI_Op MPI_BAND = 0x58000006;
inline constexpr MPI_Op MPI_LOR = 0x58000007;
inline constexpr MPI_Op MPI_BOR = 0x58000008;
inline constexpr MPI_Op MPI_LXOR = 0x58000009;
inline constexpr MPI_Op MPI_BXOR = 0x5800000a;
inline constexpr MPI_Op MPI_MINLOC = 0x5800000b;
inline constexpr MPI_Op MPI_MAXLOC = 0x5800000c;

inline constexpr int MPI_SUCCESS = 0;
inline constexpr int MPI_ERR_OTHER = 15;
inline constexpr int MPI_ANY_SOURCE = -2;
inline constexpr int MPI_ANY_TAG = -1;
inline constexpr int MPI_KEYVAL_INVALID = 0x24000000;
inline constexpr int MPI_COMBINER_NAMED = 1;
#define MPI_IN_PLACE (reinterpret_cast<void*>(-1))
#define MPI_STATUS_IGNORE (reinterpret_cast<MPI_Status*>(1))

using MPI_Aint = long;
using MPI_Comm_copy_attr_function = int(MPI_Comm, int, void*, void*, void*, int*);
using MPI_Comm_delete_attr_function = int(MPI_Comm, int, void*, void*);
#define MPI_COMM_NULL_COPY_FN (static_cast<MPI_Comm_copy_attr_function*>(nullptr))

extern "C" {
int PMPI_Allgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
int PMPI_Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int PMPI_Barrier(MPI_Comm);
int PMPI_Comm_call_errhandler(MPI_Comm, int);
int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function*, int*, void*);
int PMPI_Comm_get_attr(MPI_Comm, int, void*, int*);
int PMPI_Comm_rank(MPI_Comm, int*);
int PMPI_Comm_set_attr(MPI_Comm, int, void*);
int PMPI_Comm_size(MPI_Comm, int*);
int PMPI_Comm_test_inter(MPI_Comm, int*);
int PMPI_Finalized(int*);
int PMPI_Initialized(int*);
int PMPI_Iprobe(int, int, MPI_Comm, int*, MPI_Status*);
int PMPI_Pack(const void*, int, MPI_Datatype, void*, int, int*, MPI_Comm);
int PMPI_Reduce_local(const void*, void*, int, MPI_Datatype, MPI_Op);
int PMPI_Type_get_envelope(MPI_Datatype, int*, int*, int*, int*);
int PMPI_Type_get_extent(MPI_Datatype, MPI_Aint*, MPI_Aint*);
int PMPI_Type_size(MPI_Datatype, int*);
int PMPI_Unpack(const void*, int, int*, void*, int, MPI_Datatype, MPI_Comm);

int MPI_Allgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
int MPI_Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Barrier(MPI_Comm);
int MPI_Finalize();
int MPI_Bcast(void*, int, MPI_Datatype, int, MPI_Comm);
int MPI_Reduce(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
}
