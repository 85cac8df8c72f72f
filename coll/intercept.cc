// The library's versions of MPI functions. The loader finds them before those of MPI. If the library does not
// take over a call, it calls the function of the same name in the next library: a profiling tool or MPI
// itself.
//
// All ranks of a communicator must decide alike whether the library takes over a call. Therefore the decision
// depends only on properties that are equal on all ranks: the function, the number of bytes and the
// operation. Datatypes may differ between ranks, because the library packs elements that are not contiguous.
#include <dlfcn.h>
#include <rdma/fi_errno.h>

#include <climits>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "call_counters.h"
#include "communicator.h"
#include "reductions.h"
#include "settings.h"

namespace coll {
namespace {

/// Returns the function of this name in the next library that has one.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Computes the number of bytes of one call. Returns false if the arguments are invalid, or if there are more
/// than INT_MAX bytes. In this case MPI handles the call, and reports the error if there is one.
bool measure(int count, MPI_Datatype type, std::size_t& bytes) {
  int size = 0;
  if (count < 0 || type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS || size < 0)
    return false;
  bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
  return bytes <= INT_MAX;
}

/// Returns true for a predefined type without gaps, whose elements are contiguous in memory. Such a type is
/// never freed, so this function can remember the last type.
bool is_plain(MPI_Datatype type) {
  static thread_local MPI_Datatype last = MPI_DATATYPE_NULL;
  if (type == last && type != MPI_DATATYPE_NULL) return true;
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  if (PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return false;
  if (combiner != MPI_COMBINER_NAMED) return false;
  int size = 0;
  MPI_Aint begin = 0;
  MPI_Aint extent = 0;
  PMPI_Type_size(type, &size);
  PMPI_Type_get_extent(type, &begin, &extent);
  const bool plain = begin == 0 && extent == size;
  if (plain) last = type;
  return plain;
}

/// Contiguous access to a buffer: the buffer itself if its elements are contiguous, or a packed copy.
class FlatBuffer {
 public:
  FlatBuffer(const void* buffer, int count, MPI_Datatype type, std::size_t bytes, MPI_Comm comm)
      : buffer_(const_cast<void*>(buffer)), count_(count), type_(type), bytes_(bytes), comm_(comm) {
    if (bytes > 0 && !is_plain(type)) packed_ = std::make_unique<std::byte[]>(bytes);
  }
  void* data() const { return packed_ != nullptr ? packed_.get() : buffer_; }
  bool pack() {
    int position = 0;
    return packed_ == nullptr || PMPI_Pack(buffer_, count_, type_, packed_.get(), static_cast<int>(bytes_),
                                           &position, comm_) == MPI_SUCCESS;
  }
  bool unpack() {
    int position = 0;
    return packed_ == nullptr || PMPI_Unpack(packed_.get(), static_cast<int>(bytes_), &position, buffer_,
                                             count_, type_, comm_) == MPI_SUCCESS;
  }

 private:
  void* buffer_;
  int count_;
  MPI_Datatype type_;
  std::size_t bytes_;
  MPI_Comm comm_;
  std::unique_ptr<std::byte[]> packed_;
};

/// Returns null if MPI handles the call: the library cannot take it over, the settings exclude it, or the
/// communicator has no team.
Communicator* takes(Call call, bool possible, std::size_t bytes, MPI_Comm comm) {
  const Settings& settings = Settings::get();
  if (!settings.error().empty()) warn_once("libcluster-coll: %s\n", settings.error().c_str());
  const bool wanted = possible && comm != MPI_COMM_NULL && settings.takes(call, bytes);
  Communicator* const communicator = wanted ? Communicator::of(comm) : nullptr;
  CallCounters::get().count(call, communicator != nullptr);
  return communicator;
}

/// Begins an operation and waits until it is done. Reports an error to the error handler of the communicator.
template <typename Begin>
int run(Call call, MPI_Comm comm, const Communicator& communicator, Begin&& begin) {
  Pending pending;
  ssize_t begun = -FI_EAGAIN;
  while ((begun = begin(&pending)) == -FI_EAGAIN) communicator.progress();
  const int error = begun == 0 ? communicator.wait(pending) : static_cast<int>(-begun);
  if (error == 0) return MPI_SUCCESS;
  communicator.report_failure(call, error);
  PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

/// The provider cannot combine the pairs of MPI_MINLOC and MPI_MAXLOC. If the pairs of all ranks have at most
/// this many bytes, each rank gathers all pairs and lets MPI combine them in rank order.
constexpr std::size_t kGatheredMax = 8 * 1024;

/// Computes the size of the pairs in memory, including gaps. Returns false for operations other than
/// MPI_MINLOC and MPI_MAXLOC, for no pairs, for a type that does not begin at offset 0, and if the size
/// exceeds kGatheredMax. All ranks get the same result, because all must pass the same type: MPI defines
/// these operations only for predefined types.
bool measure_pairs(int count, MPI_Datatype type, MPI_Op op, std::size_t& bytes) {
  if ((op != MPI_MINLOC && op != MPI_MAXLOC) || type == MPI_DATATYPE_NULL || count <= 0) return false;
  MPI_Aint begin = 0;
  MPI_Aint extent = 0;
  if (PMPI_Type_get_extent(type, &begin, &extent) != MPI_SUCCESS || begin != 0 || extent <= 0) return false;
  bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(extent);
  return bytes <= kGatheredMax;
}

int allreduce_pairs(const void* own, void* target, int count, std::size_t bytes, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, const Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  // Memory that is aligned for every type. The blocks in it are aligned too, because an extent is a multiple
  // of the alignment.
  std::vector<std::max_align_t> memory((bytes * ranks + sizeof(std::max_align_t) - 1) /
                                       sizeof(std::max_align_t));
  auto* const all = reinterpret_cast<std::byte*>(memory.data());
  const int status = run(Call::allreduce, comm, communicator, [&](void* context) {
    return fi_allgather(communicator.ep(), own, bytes, nullptr, all, nullptr, communicator.team().address(),
                        FI_UINT8, 0, context);
  });
  if (status != MPI_SUCCESS) return status;
  std::byte* const last = all + bytes * (ranks - 1);
  for (std::byte* block = last; block != all;) {
    block -= bytes;
    const int combined = PMPI_Reduce_local(block, last, count, type, op);
    if (combined != MPI_SUCCESS) return combined;
  }
  std::memcpy(target, last, bytes);
  return MPI_SUCCESS;
}

bool valid_root(int root, const Communicator& communicator) {
  return root >= 0 && root < communicator.size();
}

}  // namespace
}  // namespace coll

using namespace coll;

extern "C" {

[[gnu::visibility("default")]] int MPI_Finalize() {
  static auto* const behind = next<decltype(MPI_Finalize)>("MPI_Finalize");
  Communicator::end_all(true);
  return behind();
}

[[gnu::visibility("default")]] int MPI_Barrier(MPI_Comm comm) {
  static auto* const behind = next<decltype(MPI_Barrier)>("MPI_Barrier");
  const Communicator* const communicator = takes(Call::barrier, true, 0, comm);
  if (communicator == nullptr) return behind(comm);
  return run(Call::barrier, comm, *communicator, [&](void* context) {
    return fi_barrier(communicator->ep(), communicator->team().address(), context);
  });
}

[[gnu::visibility("default")]] int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root,
                                             MPI_Comm comm) {
  static auto* const behind = next<decltype(MPI_Bcast)>("MPI_Bcast");
  std::size_t bytes = 0;
  const bool possible = measure(count, type, bytes);
  const Communicator* const communicator = takes(Call::bcast, possible, bytes, comm);
  if (communicator == nullptr || !valid_root(root, *communicator))
    return behind(buffer, count, type, root, comm);
  FlatBuffer flat(buffer, count, type, bytes, comm);
  if (communicator->rank() == root) flat.pack();
  const int status = run(Call::bcast, comm, *communicator, [&](void* context) {
    return fi_broadcast(communicator->ep(), flat.data(), bytes, nullptr, communicator->team().address(),
                        communicator->team().member(root), FI_UINT8, 0, context);
  });
  if (status == MPI_SUCCESS && communicator->rank() != root) flat.unpack();
  return status;
}

[[gnu::visibility("default")]] int MPI_Allreduce(const void* source, void* target, int count,
                                                 MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  static auto* const behind = next<decltype(MPI_Allreduce)>("MPI_Allreduce");
  std::size_t bytes = 0;
  fi_datatype elements = FI_UINT8;
  fi_op operation = FI_NOOP;
  const bool ours = measure(count, type, bytes) && translate(type, op, elements, operation);
  const bool pairs = !ours && measure_pairs(count, type, op, bytes);
  const Communicator* const communicator = takes(Call::allreduce, ours || pairs, bytes, comm);
  const bool many = pairs && communicator != nullptr &&
                    bytes * static_cast<std::size_t>(communicator->size()) > kGatheredMax;
  if (communicator == nullptr || many) return behind(source, target, count, type, op, comm);
  const void* const own = source == MPI_IN_PLACE ? target : source;
  if (pairs) return allreduce_pairs(own, target, count, bytes, type, op, comm, *communicator);
  return run(Call::allreduce, comm, *communicator, [&](void* context) {
    return fi_allreduce(communicator->ep(), own, static_cast<std::size_t>(count), nullptr, target, nullptr,
                        communicator->team().address(), elements, operation, 0, context);
  });
}

[[gnu::visibility("default")]] int MPI_Reduce(const void* source, void* target, int count, MPI_Datatype type,
                                              MPI_Op op, int root, MPI_Comm comm) {
  static auto* const behind = next<decltype(MPI_Reduce)>("MPI_Reduce");
  std::size_t bytes = 0;
  fi_datatype elements = FI_UINT8;
  fi_op operation = FI_NOOP;
  const bool ours = measure(count, type, bytes) && translate(type, op, elements, operation);
  const Communicator* const communicator = takes(Call::reduce, ours, bytes, comm);
  if (communicator == nullptr || !valid_root(root, *communicator))
    return behind(source, target, count, type, op, root, comm);
  const void* const own = source == MPI_IN_PLACE ? target : source;
  return run(Call::reduce, comm, *communicator, [&](void* context) {
    return fi_reduce(communicator->ep(), own, static_cast<std::size_t>(count), nullptr, target, nullptr,
                     communicator->team().address(), communicator->team().member(root), elements, operation,
                     0, context);
  });
}

[[gnu::visibility("default")]] int MPI_Allgather(const void* source, int source_count,
                                                 MPI_Datatype source_type, void* target, int target_count,
                                                 MPI_Datatype target_type, MPI_Comm comm) {
  static auto* const behind = next<decltype(MPI_Allgather)>("MPI_Allgather");
  std::size_t block = 0;
  const bool possible = measure(target_count, target_type, block);
  const Communicator* const communicator = takes(Call::allgather, possible, block, comm);
  const std::size_t ranks = communicator != nullptr ? static_cast<std::size_t>(communicator->size()) : 1;
  const bool fits = block * ranks <= INT_MAX && static_cast<std::size_t>(target_count) * ranks <= INT_MAX;
  if (communicator == nullptr || !fits)
    return behind(source, source_count, source_type, target, target_count, target_type, comm);
  const int all_count = target_count * communicator->size();
  FlatBuffer all(target, all_count, target_type, block * ranks, comm);
  std::unique_ptr<FlatBuffer> own;
  const void* own_data = nullptr;
  if (source == MPI_IN_PLACE) {
    all.pack();
    own_data = static_cast<std::byte*>(all.data()) + block * static_cast<std::size_t>(communicator->rank());
  } else {
    own = std::make_unique<FlatBuffer>(source, source_count, source_type, block, comm);
    own->pack();
    own_data = own->data();
  }
  const int status = run(Call::allgather, comm, *communicator, [&](void* context) {
    return fi_allgather(communicator->ep(), own_data, block, nullptr, all.data(), nullptr,
                        communicator->team().address(), FI_UINT8, 0, context);
  });
  if (status == MPI_SUCCESS) all.unpack();
  return status;
}

}  // extern "C"
