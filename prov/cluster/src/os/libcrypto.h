// The primitives of crypto/ by OpenSSL's libcrypto. The plugin looks for it when the first key is used: so it depends on no version of
// it, and loads where there is none.
#pragma once

#include <memory>
#include <string>

#include "crypto/cryptography.h"

namespace cluster::os {

/// Null if no libcrypto of version 3 or 1.1 can be loaded, or if the one that was found does not compute what
/// the RFCs say; `reason` says why.
std::shared_ptr<const crypto::Cryptography> load_libcrypto(std::string& reason);

}  // namespace cluster::os
