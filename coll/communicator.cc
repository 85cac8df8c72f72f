#include "communicator.h"

#include <rdma/fi_errno.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "call_counters.h"
#include "settings.h"

namespace coll {
namespace {

/// The data that each rank of a communicator sends to the other ranks.
struct Introduction {
  std::uint64_t fingerprint;  ///< fingerprint of the rank's settings
  std::uint64_t team_key;     ///< the first rank's key distinguishes this team from others of the same ranks
  std::uint32_t usable;
  std::uint32_t name_size;
  std::array<std::byte, 48> name;
};

std::once_flag keys_made;
int communicator_key = MPI_KEYVAL_INVALID;
int process_key = MPI_KEYVAL_INVALID;

/// MPI calls this function when MPI_Finalize frees the attributes of MPI_COMM_SELF. This function closes the
/// endpoint if the program does not call the MPI_Finalize of this library.
int end_process(MPI_Comm, int, void*, void*) {
  Communicator::end_all(false);
  return MPI_SUCCESS;
}

/// All existing Communicators. Each lives as long as MPI keeps its attribute. The endpoint must be closed
/// before MPI frees the attribute of MPI_COMM_WORLD, and teams must be closed before the endpoint. Therefore
/// end_all() needs this list.
std::mutex known_lock;
std::set<Communicator*> known_communicators;
std::atomic<bool> ended{false};
std::atomic<std::uint64_t> communicators_forgotten{0};

/// In a probe for messages of other ranks, MPI progresses all operations, even locks that peers request in
/// windows of this rank. In MPICH 5.0.2, a probe on MPI_COMM_SELF does not progress such locks, so a peer
/// waited forever for its lock. Therefore this function probes MPI_COMM_WORLD. A probe that finds a message
/// may return without progress. Therefore the probe is for a tag that programs hardly use. Every MPI library
/// allows this tag.
void make_progress_of_mpi() {
  constexpr int kUnusedTag = 32767;
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, kUnusedTag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

/// Returns false before MPI_Init and after MPI_Finalize. A program that uses only sessions does not call
/// MPI_Init, and has no MPI_COMM_WORLD. In such a program MPI frees attribute keys with the last session, and
/// the library would not notice that. The result is the same on all ranks, because either all ranks call
/// MPI_Init or none does.
bool has_world() {
  int initialized = 0;
  int finalized = 0;
  PMPI_Initialized(&initialized);
  PMPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

}  // namespace

int forget_communicator(MPI_Comm, int, void* attribute, void*) {
  ++communicators_forgotten;
  delete static_cast<Communicator*>(attribute);
  return MPI_SUCCESS;
}

namespace {

void make_keys() {
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_communicator, &communicator_key, nullptr);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_process, &process_key, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, process_key, nullptr);
}

}  // namespace

void warn_once(const char* format, const char* reason) {
  static std::once_flag warned;
  std::call_once(warned, [&] { std::fprintf(stderr, format, reason); });
}

/// Programs often use the same communicator in many calls. Therefore this function remembers the last
/// communicator. It asks MPI again only for another communicator, or after any communicator was freed.
Communicator* Communicator::of(MPI_Comm comm) {
  if (ended.load(std::memory_order_acquire)) return nullptr;
  struct Last {
    MPI_Comm comm = MPI_COMM_NULL;
    Communicator* known = nullptr;
    std::uint64_t forgotten = 0;
  };
  static thread_local Last last;
  const std::uint64_t forgotten = communicators_forgotten.load(std::memory_order_acquire);
  if (last.known == nullptr || last.comm != comm || last.forgotten != forgotten)
    last = {comm, find(comm), forgotten};
  return last.known;
}

Communicator* Communicator::find(MPI_Comm comm) {
  if (!has_world()) return nullptr;
  std::call_once(keys_made, make_keys);
  void* attribute = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, communicator_key, &attribute, &found) != MPI_SUCCESS) return nullptr;
  auto* known = static_cast<Communicator*>(attribute);
  if (found == 0) {
    known = new Communicator();
    known->make_team(comm);
    PMPI_Comm_set_attr(comm, communicator_key, known);
  }
  return known->team_ != nullptr ? known : nullptr;
}

Communicator::Communicator() {
  const std::lock_guard lock(known_lock);
  known_communicators.insert(this);
}

Communicator::~Communicator() {
  const std::lock_guard lock(known_lock);
  known_communicators.erase(this);
}

void Communicator::end_all(bool together) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (together) PMPI_Barrier(MPI_COMM_WORLD);
  if (ended.exchange(true)) return;
  {
    const std::lock_guard lock(known_lock);
    for (Communicator* const communicator : known_communicators) communicator->team_.reset();
  }
  ProcessEndpoint::close();
  if (Settings::get().report())
    std::fprintf(stderr, "libcluster-coll: rank %d: %s\n", rank, CallCounters::get().text().c_str());
}

/// Every rank takes part in both exchanges, even if it cannot use the team, because the other ranks wait for
/// it.
bool Communicator::make_team(MPI_Comm comm) {
  int inter = 0;
  if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0) return false;
  if (PMPI_Comm_size(comm, &size_) != MPI_SUCCESS || size_ < 2) return false;
  PMPI_Comm_rank(comm, &rank_);
  std::string reason;
  endpoint_ = ProcessEndpoint::get(reason);
  static std::atomic<std::uint64_t> teams{0};
  Introduction mine{};
  mine.team_key = ++teams;
  mine.fingerprint = Settings::get().fingerprint();
  mine.usable = endpoint_ != nullptr && endpoint_->name().size() <= mine.name.size();
  if (mine.usable != 0) {
    mine.name_size = static_cast<std::uint32_t>(endpoint_->name().size());
    std::memcpy(mine.name.data(), endpoint_->name().data(), mine.name_size);
  } else {
    warn_once("libcluster-coll: MPI performs the collectives of this process: %s\n", reason.c_str());
  }
  std::vector<Introduction> all(static_cast<std::size_t>(size_));
  if (PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, comm) != MPI_SUCCESS)
    return false;
  std::vector<Name> names;
  for (const Introduction& each : all) {
    if (each.usable == 0 || each.name_size > each.name.size()) return false;
    if (each.fingerprint != mine.fingerprint) {
      warn_once("libcluster-coll: %s differs between ranks; MPI performs the collectives of these ranks\n",
                "CLUSTER_COLL");
      return false;
    }
    names.emplace_back(each.name.begin(), each.name.begin() + each.name_size);
  }
  std::unique_ptr<Team> team = endpoint_->join(names, all.front().team_key, make_progress_of_mpi);
  int here = team != nullptr;
  if (here == 0)
    warn_once(
        "libcluster-coll: MPI performs the collectives of a communicator: this process cannot join its "
        "team%s\n",
        " (FI_LOG_LEVEL=warn says why)");
  int everywhere = 0;
  if (PMPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS || everywhere == 0)
    return false;
  team_ = std::move(team);
  return true;
}

/// Another rank may need MPI progress of this rank before it can begin the operation. Therefore this loop
/// calls MPI. If ranks share processors, the rank that must answer may need the processor of this rank.
/// Therefore this rank yields after each poll, and after kLooksFirst polls sleeps until something arrives. If
/// no other process wants the processor, a yield costs less than a poll. A wake-up costs more than many
/// polls. With 8 ranks on two processors, a barrier takes 10 % less time with 80 polls than with 20. More
/// than 80 polls save no further time.
int Communicator::wait(Pending& pending) const {
  constexpr unsigned kLooksFirst = 80;
  for (unsigned looks = 1; !pending.done.load(std::memory_order_acquire); ++looks) {
    if (looks < kLooksFirst) {
      endpoint_->progress();
      if (!pending.done.load(std::memory_order_acquire)) std::this_thread::yield();
      continue;
    }
    make_progress_of_mpi();
    endpoint_->sleep();
  }
  return pending.error;
}

/// A rank that did not communicate with the lost rank is only told that the team has failed. The line that
/// such a rank prints therefore refers to the lines of other ranks.
void Communicator::report_failure(Call call, int error) const {
  static std::atomic<bool> reported{false};
  if (reported.exchange(true)) return;
  const Loss loss = endpoint_->loss_among(*team_);
  std::string reason = endpoint_->text_of(error);
  if (!loss.cause.empty()) {
    reason = "rank " + std::to_string(team_->rank_of(loss.peer)) + " is lost: " + loss.cause;
  } else if (error == FI_ETRUNC) {
    reason = "the ranks give different lengths, or call collectives in different orders";
  } else {
    reason += " (if a rank is lost, the line of another rank names it)";
  }
  std::fprintf(stderr, "libcluster-coll: rank %d of %d: %s failed: %s\n", rank_, size_, name_of(call),
               reason.c_str());
}

}  // namespace coll
