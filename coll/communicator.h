// The library's data about a communicator, kept as an attribute of it: the team of its ranks, or the decision
// that MPI serves it. All ranks of the communicator make this decision together, at the first call that the
// library could take over. They exchange the names of their endpoints by a collective of MPI, so no rank
// waits for another that has decided differently. The data is freed with the communicator.
#pragma once

#include <memory>

#include "abi.h"
#include "process_endpoint.h"
#include "settings.h"

namespace coll {

class Communicator {
 public:
  /// Returns null if MPI serves the communicator: if it is an intercommunicator, has one rank, or has no
  /// team. MPI serves all communicators of a program that only uses sessions.
  static Communicator* of(MPI_Comm comm);
  /// Ends all teams and the endpoint of this process; MPI serves all later calls. `together`: all ranks call
  /// this and wait for each other, so that no rank loses a member while it waits for another.
  static void end_all(bool together);
  ~Communicator();

  const Team& team() const { return *team_; }
  fid_ep* ep() const { return endpoint_->ep(); }
  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Waits until an operation is done. Meanwhile the endpoint and MPI both make progress. Returns the
  /// operation's error number.
  int wait(Pending& pending) const;
  /// Prints, once in a process, what MPI's error code does not say: why a call failed, and which rank is
  /// lost.
  void report_failure(Call call, int error) const;
  /// Makes progress between two attempts of a call that must be repeated.
  void progress() const { endpoint_->progress(); }

 private:
  Communicator();
  bool make_team(MPI_Comm comm);

  ProcessEndpoint* endpoint_ = nullptr;
  std::unique_ptr<Team> team_;  ///< null: MPI serves the communicator
  int rank_ = 0;
  int size_ = 0;

  static Communicator* find(MPI_Comm comm);

  friend int forget_communicator(MPI_Comm comm, int key, void* attribute, void* extra);
};

/// Prints one line on standard error, at most once in a process.
void warn_once(const char* format, const char* reason);

}  // namespace coll
