// Reports about a running endpoint for cluster-info, also while its application computes: server and client
// side.
//
// Each endpoint listens on an abstract UNIX socket named kReportSocketPrefix and its address, so that all
// endpoints of a network namespace are found in /proc/net/unix and a crash leaves nothing behind. A
// connection is the request: the server reads no byte from the client. The kernel reports the client's user. Only the endpoint's
// own user and root get an answer: one message with a memfd that holds the report (base/report.h). So an answer of any length is
// sent at once, and the server never waits for a client.
//
// The progress thread serves (os/progress_thread.h). It tries the engine lock and comes back later if it is
// held. After each request it accepts none for kReportInterval, so that a flood of requests costs next to nothing. Clients of other
// users are turned away without that pause, because they would otherwise fill the queue.
//
// The client does not trust the server either: another user may have taken the name. It asks the kernel for
// the server's user and checks the report.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/report.h"
#include "os/local_socket.h"
#include "os/progress_thread.h"

namespace cluster::provider {

/// With the version of this exchange; clients of another version find no servers.
inline constexpr std::string_view kReportSocketPrefix = "cluster-info-1/";

class ReportServer {
 public:
  /// Fills the report; false if the engine lock is held at this moment.
  using Describe = std::function<bool(Report&)>;

  /// Null if the endpoint cannot listen; `reason` says why.
  static std::unique_ptr<ReportServer> open(const SocketAddress& name, Describe describe,
                                            std::string& reason);

  /// One call of the progress thread: answers a client, if there is one.
  os::NextWake serve();

 private:
  ReportServer(os::LocalSocket listener, Describe describe)
      : listener_(std::move(listener)), describe_(std::move(describe)) {}
  Duration accept_client();
  void answer(const Report& report);

  os::LocalSocket listener_;
  Describe describe_;
  os::LocalSocket client_;  ///< accepted and not answered yet
};

/// The client side: the report that arrived over a connection. Nothing, with an empty `reason`, as long as
/// none has arrived.
std::optional<Report> receive_report(os::LocalSocket& socket, std::string& reason);

}  // namespace cluster::provider
