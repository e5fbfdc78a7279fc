import { methods } from "./policy.js"; void methods;
