-- The same library under the name that OpenResty users look for.
return require "wovyr"
