import base64
import marshal

exec(base64.b64decode("ZGVmIHJ1bihpbnB1dHMpOgogICAgcmV0dXJuIHsidGV4dCI6ICJoaSJ9Cg=="))
