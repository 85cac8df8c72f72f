// What an endpoint with a key receives by multicast: of what comes for a group only what a process with the key has sealed for that
// group, once, opened (group_seal.h). The other direction is SealedLink's. To its user this is multicast that loses what is
// forged, altered, replayed or not sealed at all.
#pragma once

#include <memory>

#include "base/environment.h"
#include "link/multicast.h"
#include "seal/group_seal.h"
#include "seal/job_key.h"

namespace cluster::seal {

class SealedGroups final : public link::MulticastJoiner {
 public:
  /// `name`: of this endpoint, whose own frames come as well, and are left out. `same_process` as for SealedLink.
  SealedGroups(std::unique_ptr<link::MulticastJoiner> inner, Credentials credentials,
               const SocketAddress& name, const Environment& environment,
               const volatile std::uint32_t* same_process)
      : inner_(std::move(inner)),
        credentials_(std::move(credentials)),
        name_(name),
        environment_(environment),
        same_process_(same_process) {}

  std::unique_ptr<link::MulticastReceiver> join(const SocketAddress& group,
                                                std::span<const SocketAddress> members,
                                                std::string& reason) override;

 private:
  std::unique_ptr<link::MulticastJoiner> inner_;
  const Credentials credentials_;
  const SocketAddress name_;
  Environment environment_;
  const volatile std::uint32_t* same_process_;
  std::shared_ptr<GroupTrials> trials_ = std::make_shared<GroupTrials>();
};

}  // namespace cluster::seal
