// The library's data about a communicator: the team of its ranks, or the decision that MPI handles the
// communicator's calls. All ranks of the communicator decide together, at the first call that the library
// could take over. For this they exchange the names of their endpoints with an MPI collective, so that all
// ranks decide alike. The data is an attribute of the communicator, so MPI frees it with the communicator.
#pragma once

#include <memory>

#include "abi.h"
#include "process_endpoint.h"
#include "settings.h"

namespace coll {

class Communicator {
 public:
  /// Returns the data of a communicator, or null if MPI handles its calls. MPI handles the calls of an
  /// intercommunicator, of a communicator with one rank or without a team, and of a program that uses only
  /// sessions.
  static Communicator* of(MPI_Comm comm);
  /// Closes all teams and the endpoint of this process. MPI handles all later calls. `together`: true if all
  /// ranks call this function. If so, the function first waits for all ranks, so that no rank loses a member
  /// in the middle of an operation.
  static void end_all(bool together);
  ~Communicator();

  const Team& team() const { return *team_; }
  fid_ep* ep() const { return endpoint_->ep(); }
  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Waits until an operation is done. Meanwhile progresses the endpoint and MPI. Returns 0 or the error
  /// number of the operation.
  int wait(Pending& pending) const;
  /// Prints why a call failed and which rank is lost, because MPI's error code says neither. Prints at most
  /// once in a process.
  void report_failure(Call call, int error) const;
  /// Progresses the endpoint. Called between two attempts of a call that returned -FI_EAGAIN.
  void progress() const { endpoint_->progress(); }

 private:
  Communicator();
  bool make_team(MPI_Comm comm);

  ProcessEndpoint* endpoint_ = nullptr;
  std::unique_ptr<Team> team_;  ///< null if MPI handles the communicator's calls
  int rank_ = 0;
  int size_ = 0;

  static Communicator* find(MPI_Comm comm);

  friend int forget_communicator(MPI_Comm comm, int key, void* attribute, void* extra);
};

/// Prints one line on standard error, at most once in a process.
void warn_once(const char* format, const char* reason);

}  // namespace coll
