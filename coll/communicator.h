// What the library knows of a communicator, kept as an attribute of it: the team of its ranks, or that it is left to
// MPI. Decided once, at the first call that the library would take over, by all ranks of the communicator together:
// they exchange the names of their endpoints by a collective of MPI, so that none of them waits for one that has
// decided otherwise. The attribute ends with the communicator.
#pragma once

#include <memory>

#include "abi.h"
#include "process_endpoint.h"
#include "settings.h"

namespace coll {

class Communicator {
 public:
  /// Null if the communicator is left to MPI: an intercommunicator, one of a single rank, or one without a team; and all of a
  /// program that has sessions alone.
  static Communicator* of(MPI_Comm comm);
  /// Ends all teams and the endpoint of this process; what is called from then on is left to MPI. `together`: all ranks
  /// call it, and wait for each other, so that none of them loses a member while it still waits for another one.
  static void end_all(bool together);
  ~Communicator();

  const Team& team() const { return *team_; }
  fid_ep* ep() const { return endpoint_->ep(); }
  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Until an operation is done; both its own endpoint and MPI make progress meanwhile. Returns its error number.
  int wait(Pending& pending) const;
  /// Says once in a process what MPI's error code does not: why a call has failed, and which rank is lost.
  void report_failure(Call call, int error) const;
  /// Something to do between two calls that have to be repeated.
  void progress() const { endpoint_->progress(); }

 private:
  Communicator();
  bool make_team(MPI_Comm comm);

  ProcessEndpoint* endpoint_ = nullptr;
  std::unique_ptr<Team> team_;  ///< null: left to MPI
  int rank_ = 0;
  int size_ = 0;

  static Communicator* find(MPI_Comm comm);

  friend int forget_communicator(MPI_Comm comm, int key, void* attribute, void* extra);
};

/// One line on the first rank's standard error, at most once in a process.
void warn_once(const char* format, const char* reason);

}  // namespace coll
